"""Which children of a node a step means."""

import collections
import dataclasses
from typing import Any, NamedTuple

import attrs
import jax
import numpy as np
import pytest

from staged_axes._structure import tree as _tree
from staged_axes._structure.match import match
from staged_axes._words.paths import Index, Key, Name, Span


class Point(NamedTuple):
    x: Any
    y: Any
    z: Any


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class Wheel:
    radius: Any
    drag: Any
    label: str = "front"

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("radius"), self.radius), (key("drag"), self.drag)), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


@jax.tree_util.register_pytree_node_class
class Keyless:
    """A class from before JAX had keys."""

    def __init__(self, radius, drag, label="front"):
        self.radius, self.drag, self.label = radius, drag, label

    def tree_flatten(self):
        return (self.radius, self.drag), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)

    @property
    def broken(self):
        """Fail, and not as Python expects it."""
        raise RuntimeError


@jax.tree_util.register_pytree_node_class
class Checked(Keyless):
    """A keyless class that takes arrays alone."""

    def __init__(self, radius, drag, label="front"):
        super().__init__(radius + 0, drag + 0, label)
        self.radius, self.drag = radius, drag


@jax.tree_util.register_pytree_node_class
@attrs.define
class Swapped:
    """A keyless class whose children are in another order than its attributes."""

    first: Any
    second: Any

    def tree_flatten(self):
        return (self.second, self.first), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*reversed(children))


@jax.tree_util.register_pytree_node_class
class Hidden:
    """A keyless class that keeps its children out of sight."""

    __slots__ = ("_held",)

    def __init__(self, *held):
        self._held = held

    def tree_flatten(self):
        return self._held, None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    @property
    def first(self):
        return self._held[0]


@jax.tree_util.register_pytree_with_keys_class
class Row:
    """A class of one's own that counts its children."""

    def __init__(self, *held):
        self.held = held

    def tree_flatten_with_keys(self):
        key = jax.tree_util.SequenceKey
        return tuple((key(i), x) for i, x in enumerate(self.held)), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def found(node, step):
    """The positions of the children that a step means."""
    return match(node, _tree.children(node), step)


A, B, C = np.zeros(1), np.zeros(2), np.zeros(3)
DICT = {"b": B, "a": A}
DICTS = [
    dict,
    collections.OrderedDict,
    lambda d: collections.defaultdict(list, d),
]


@pytest.mark.parametrize("make", DICTS, ids=["dict", "ordered", "default"])
def test_every_dict_is_alike(make):
    """A name is found by what it is called, whatever the order of the dict."""
    node = make(DICT)
    keys = _tree.children(node).steps
    assert keys[found(node, Name("b"))[0]] == Name("b", is_item=True)
    assert found(node, Name("b")) == found(node, Name("b", is_item=True))
    assert found(node, Name("c")) == []


def test_a_frozen_dict_is_a_dict():
    """The FrozenDict of flax is reached like any other."""
    core = pytest.importorskip("flax.core")
    assert found(core.FrozenDict(DICT), Name("b")) == [1]


@pytest.mark.parametrize(
    ("node", "step", "expected"),
    [
        ([A, B, C], Index(2), [2]),
        ([A, B, C], Index(-3), [0]),
        ([A, B, C], Index(3), []),
        ([A, B, C], Index(-4), []),
        ((A, B, C), Index(-1), [2]),
        (Point(A, B, C), Name("y"), [1]),
        (Point(A, B, C), Index(1), [1]),
        (Point(A, B, C), Index(-1), [2]),
        (Point(A, B, C), Name("w"), []),
        (Row(A, B), Index(1), [1]),
        (Row(A, B), Index(-1), [1]),
        (Wheel(A, B), Name("drag"), [1]),
        (Wheel(A, B), Name("drag", is_item=True), [1]),
        (Wheel(A, B), Name("label"), []),
        (Wheel(A, B), Index(0), []),
        ({1: A, 10: B}, Index(10), [1]),
        ({1: A, 10: B}, Index(0), []),
        ({1: A, 10: B}, Index(-1), []),
        ({(1, 2): A}, Key((1, 2)), [0]),
        ({1.5: A}, Key(1.5), [0]),
        ({True: A}, Key(True), [0]),
        ({True: A}, Index(1), []),
        ([A, B], Name("0"), []),
        (A, Index(0), []),
        (A, Name("shape"), []),
        (None, Index(0), []),
        ([], Index(0), []),
    ],
    ids=repr,
)
def test_one_child(node, step, expected):
    """A step means the child of that name, key or position, and no other."""
    assert found(node, step) == expected


@pytest.mark.parametrize(
    ("node", "step", "expected"),
    [
        ([A, B, C], Span(), [0, 1, 2]),
        ([A, B, C], Span(1), [1, 2]),
        ([A, B, C], Span(None, -1), [0, 1]),
        ([A, B, C], Span(None, None, 2), [0, 2]),
        ([A, B, C], Span(None, None, -1), [2, 1, 0]),
        ([A, B, C], Span(5), []),
        (Point(A, B, C), Span(0, 2), [0, 1]),
        (Keyless(A, B), Span(1), [1]),
        (Row(A, B), Span(1), [1]),
        (DICT, Span(), [0, 1]),
        (DICT, Span(0, None, 1), [0, 1]),
        (DICT, Span(0, 1), []),
        ({1: A, 10: B}, Span(), [0, 1]),
        ({1: A, 10: B}, Span(0, 1), []),
        (Wheel(A, B), Span(), [0, 1]),
        (Wheel(A, B), Span(0, 1), []),
        ([], Span(), []),
        (A, Span(), []),
    ],
    ids=repr,
)
def test_several_children(node, step, expected):
    """`[:]` means every child of anything; other slices count what has positions."""
    assert found(node, step) == expected


@pytest.mark.parametrize(
    ("node", "name", "expected"),
    [
        (Keyless(A, B), "radius", [0]),
        (Keyless(A, B), "drag", [1]),
        (Keyless(A, B), "label", []),
        (Keyless(A, B), "missing", []),
        (Keyless(A, B), "broken", []),
        (Keyless(A, A), "radius", [0]),
        (Keyless(A, A), "drag", [1]),
        (Keyless(0, 0), "drag", [1]),
        (Swapped(A, B), "first", [1]),
        (Swapped(A, B), "second", [0]),
        (Swapped(A, A), "first", [1]),
        (Swapped(A, A), "second", [0]),
        (Checked(A, B), "radius", [0]),
        (Checked(A, A), "radius", []),
        (Hidden(A, B), "first", [0]),
        (Hidden(A, A), "first", [0]),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_keyless_by_attribute(node, name, expected):
    """A child without a key is reached by the attribute that holds it, if one does."""
    assert found(node, Name(name)) == expected


@pytest.mark.parametrize("i", [0, 1, -1, -2, 2, -3], ids=str)
def test_keyless_by_index(i):
    """A child without a key is reached by its position too."""
    expected = [[0], [1], [1], [0], [], []][[0, 1, -1, -2, 2, -3].index(i)]
    assert found(Keyless(A, B), Index(i)) == expected


def test_a_field_that_holds_none_is_there():
    """None is found by its field, with and without keys."""
    assert found(Wheel(None, B), Name("radius")) == [0]
    assert found(Keyless(None, B), Name("radius")) == [0]
    assert found([A, None], Index(1)) == [1]
