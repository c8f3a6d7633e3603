"""Values without end, and deep ones, are told from all others."""

import dataclasses

import jax
import pytest

from staged_axes._structure.depth import DEEPEST, is_too_deep


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class Node:
    """A node whose attribute `up` is no child."""

    x: object
    up: object = None

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Opaque:
    """A leaf."""

    def __init__(self):
        self.self = self


def nested(wrap, levels):
    """A value inside so many nodes."""
    value = 1.0
    for _ in range(levels):
        value = wrap(value)
    return value


WRAPS = {
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"k": x},
    "node": Node,
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_deep(wrap):
    """As many levels as are allowed, and one more."""
    assert not is_too_deep(nested(WRAPS[wrap], DEEPEST))
    assert is_too_deep(nested(WRAPS[wrap], DEEPEST + 1))


def test_without_end():
    """Containers that hold themselves, at some distance."""
    row = [1.0]
    row.append({"k": (row,)})
    assert is_too_deep(row)
    node = Node(None)
    node.x = [node]
    assert is_too_deep(node)


def test_cycles_that_jax_does_not_follow():
    """An attribute that is no child, and a leaf, may refer to what they like."""
    node = Node(1.0)
    node.up = node
    assert not is_too_deep([node])
    assert not is_too_deep([Opaque()])


@pytest.mark.parametrize("value", [1.0, None, [], {}, (), Node(None)], ids=repr)
def test_flat(value):
    """What has no levels, or one."""
    assert not is_too_deep(value)


def test_one_object_in_many_places():
    """A value that is shared at each level is looked at once for each of them."""
    value = [1.0]
    for _ in range(60):
        value = [value, value]
    assert not is_too_deep(value)
