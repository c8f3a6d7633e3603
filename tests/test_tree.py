"""Flattening as `jax.vmap` does, children by step, static data by name."""

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
from jax.experimental import sparse

from any_trees import KINDS, Box, Layer, Motor, Point, Slot, Wheel, state
from staged_axes._compat import node_class, node_data, treedef_nodes
from staged_axes._structure import tree as _tree
from staged_axes._structure.tracers import traced_statics
from staged_axes._words.paths import code

A, B = np.ones(1), np.ones(2)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_children_are_those_of_jax(kind):
    """The objects, in flatten order, as JAX itself finds them."""
    node = KINDS[kind].build(A, B)
    got = list(_tree.children(node).values)
    want = jtu.tree_leaves(node, is_leaf=lambda x: x is not node)
    assert len(got) == len(want)
    assert all(x is y for x, y in zip(got, want, strict=True))


@pytest.mark.parametrize(
    ("node", "paths"),
    [
        ({"b": A, "a": B}, ["x['a']", "x['b']"]),
        ({2: A, 1: B}, ["x[1]", "x[2]"]),
        ({(0, 1): A}, ["x[(0, 1)]"]),
        ([A, B], ["x[0]", "x[1]"]),
        (Point(A, B), ["x.x", "x.y"]),
        (Wheel(A, B), ["x.radius", "x.drag"]),
        (Motor(A, B), ["x.gear", "x.limit"]),
        (Slot(A, B), ["x.seq", "x.window"]),
        (Box(A, B), ["x[0]", "x[1]"]),
        (Layer(A, B), ["x.weight", "x.bias"]),
        ([], []),
        (None, []),
        (A, []),
        (3, []),
    ],
    ids=lambda x: type(x).__name__,
)
def test_steps(node, paths):
    """The step to each child, as code."""
    assert [code((step,), "x") for step in _tree.children(node).steps] == paths


def test_none_is_a_child():
    """A field that holds None is there."""
    assert list(_tree.children(Wheel(None, A)).values) == [None, A]


@pytest.mark.parametrize(
    ("node", "statics"),
    [
        (Wheel(A, B, "late"), {"label": "late"}),
        (Motor(A, B, "push"), {"name": "push"}),
        (Slot(A, B, 5), {"rate": 5}),
        (Box(A, B, "mm"), {"unit": "mm"}),
        (Layer(A, B, "tanh"), {"act": "tanh"}),
        ({"a": A}, {}),
        ([A], {}),
        (Point(A, B), {}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_statics(node, statics):
    """What is an attribute and no child, by name."""
    assert _tree.statics(node, _tree.children(node)) == statics


def test_nodes_come_parents_first():
    """Every inner node with its path."""
    value = {"a": [Wheel(A, B)], "b": ()}
    found = [(code(path, "x"), type(node)) for path, node, _ in _tree.nodes(value)]
    assert found == [
        ("x", dict),
        ("x['a']", list),
        ("x['a'][0]", Wheel),
        ("x['b']", tuple),
    ]


def test_sparse_arrays_are_leaves():
    """A vmappable type is one leaf, wherever it stands."""
    x = sparse.BCOO.fromdense(np.eye(2))
    leaves, treedef = _tree.flatten({"a": x, "b": [A]})
    assert leaves[0] is x
    assert treedef.num_leaves == 2
    assert not _tree.is_node(x)
    assert not _tree.children(x)
    assert [code(path, "x") for path in _tree.paths([x, A])] == ["x[0]", "x[1]"]


def test_rows_of_a_treedef():
    """What this JAX keeps of a treedef is where it is looked for."""
    treedef = jtu.tree_structure({"a": Wheel(1, [2], "late"), "b": None})
    rows = treedef_nodes(treedef)
    assert [node_class(row) for row in rows] == [None, None, None, Wheel, None, None]
    assert "late" in node_data(rows[3])


def wrapped(x):
    """An object of the user's around something."""
    return type("Holder", (), {"__init__": lambda self: setattr(self, "x", x)})()


@pytest.mark.parametrize(
    ("hide", "is_found"),
    [
        (lambda x: x, True),
        (lambda x: [{"deep": x}], True),
        (wrapped, True),
        (lambda x: lambda: x, False),
        (lambda x: "text", False),
        (lambda x: np.ones(2), False),
    ],
    ids=["tracer", "container", "object", "closure", "text", "array"],
)
def test_tracers_in_static_data(hide, is_found):
    """A tracer is found by the name of its field, in containers and objects too."""
    found = []

    @jax.jit
    def look(x):
        value = {"w": Wheel(x, x, label=hide(x))}
        treedef = jtu.tree_structure(value)
        found.extend(traced_statics(value, treedef))
        return x

    look(jnp.ones(2))
    assert [(code(path, "x"), name) for path, name in found] == (
        [("x['w']", "label")] if is_found else []
    )


def test_a_state_has_no_static_data_of_its_own():
    """The states of nnx are mappings."""
    if state.__globals__["nnx"] is None:
        pytest.skip("this flax has no nnx for this JAX")
    node = state(A, B)
    assert _tree.statics(node, _tree.children(node)) == {}
