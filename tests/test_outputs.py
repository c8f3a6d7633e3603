"""Output axes: what was asked, what varies, and outputs that are no arrays."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from jax.experimental import sparse

import staged_axes as sa

X = jnp.arange(6.0).reshape(3, 2)
RUNS = pytest.mark.parametrize("run", [sa.vmap, sa.batch], ids=["vmap", "batch"])


@struct.dataclass
class Pair:
    x: jax.Array
    y: jax.Array
    label: str = struct.field(pytree_node=False, default="?")


@RUNS
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_an_axis_counts_in_the_batched_output(run, axis):
    """Each output axis puts the examples where `np.stack` would."""
    x = jnp.arange(24.0).reshape(4, 2, 3)
    got = run(lambda v: v * 2, out_axes=axis)(x)
    want = np.stack([np.asarray(x[i]) * 2 for i in range(4)], axis=axis)
    np.testing.assert_array_equal(got, want)


@RUNS
def test_a_tree_with_other_static_data_gives_the_axes(run):
    """An ordinary tree serves for the output too, whatever its static data."""
    axes = Pair(x=1, y=0, label="made early")
    got = run(lambda v: Pair(v, v.sum(), "late"), out_axes=axes)(X)
    np.testing.assert_array_equal(got.x, np.asarray(X).T)
    np.testing.assert_array_equal(got.y, [1.0, 5.0, 9.0])
    assert got.label == "late"


@RUNS
def test_a_builder_gives_the_axes(run):
    """A record for the output: one place on axis 1, the rest on 0."""
    out = sa.AxesBuilder(default=0)
    out.x = 1
    got = run(lambda v: Pair(v, v.sum()), out_axes=out)(X)
    np.testing.assert_array_equal(got.x, np.asarray(X).T)
    np.testing.assert_array_equal(got.y, [1.0, 5.0, 9.0])


@RUNS
def test_a_tuple_is_a_tree(run):
    """A tuple has an axis for each output."""
    a, b = run(lambda v: (v, v), out_axes=(0, 1))(X)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, np.asarray(X).T)


@RUNS
def test_auto_maps_what_varies(run):
    """What depends on a mapped input is mapped; the rest comes back once."""
    spec = sa.AxesBuilder(default=None)
    spec.own = 0
    value = {"own": X, "shared": jnp.array([1.0, 2.0])}

    def fn(v):
        return {"own": v["own"].sum(), "shared": v["shared"] * 2, "one": jnp.ones(2)}

    got = run(fn, in_axes=(spec,), out_axes=sa.AUTO)(value)
    np.testing.assert_array_equal(got["own"], [1.0, 5.0, 9.0])
    np.testing.assert_array_equal(got["shared"], [2.0, 4.0])
    np.testing.assert_array_equal(got["one"], [1.0, 1.0])


def leaf_shapes(tree):
    """The shapes of the leaves."""
    return jax.tree_util.tree_map(jnp.shape, tree)


@pytest.mark.parametrize("outer", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_auto_in_auto_looks_at_its_own_batch(outer):
    """What varies over the outer batch alone is shared in the inner one."""

    def inner(x, y):
        return {"x": x * 2, "y": y + 1, "both": x + y, "none": jnp.ones(())}

    def fn(x):
        mapped = sa.vmap(inner, in_axes=(None, 0), out_axes=sa.AUTO)
        return mapped(x, jnp.arange(4.0))

    got = outer(sa.vmap(fn, out_axes=sa.AUTO))(jnp.arange(3.0))
    assert leaf_shapes(got) == {"x": (3,), "y": (4,), "both": (3, 4), "none": ()}
    want = np.arange(3.0)[:, None] + np.arange(4.0)
    np.testing.assert_array_equal(got["both"], want)


def test_auto_under_grad():
    """A shared output can be differentiated like any other."""

    def loss(w):
        got = sa.vmap(lambda w, x: (w * 2, w * x), (None, 0), out_axes=sa.AUTO)(w, X)
        return got[0] + got[1].sum()

    assert float(jax.grad(loss)(3.0)) == 2.0 + float(X.sum())


@pytest.mark.parametrize(
    "make",
    [
        partial(jax.random.split, num=3),
        lambda _: jnp.arange(3),
        lambda _: jnp.array([True, False, True]),
        lambda _: jnp.arange(3.0).astype(jnp.bfloat16),
    ],
    ids=["keys", "ints", "bools", "bfloat16"],
)
def test_auto_takes_every_kind_of_array(make):
    """Keys, ints, bools and short floats vary as floats do."""
    leaves = make(jax.random.key(0))
    got = sa.vmap(lambda x: (x, jnp.zeros(2)), out_axes=sa.AUTO)(leaves)
    assert got[0].shape == (3,)
    assert got[0].dtype == leaves.dtype
    assert got[1].shape == (2,)


@RUNS
def test_what_is_no_array_passes(run):
    """Strings, functions and objects of an output come back as they are."""
    thing = object()
    got = run(lambda v: {"v": v, "name": "n", "fn": np.sin, "thing": thing})(X)
    assert (got["name"], got["fn"], got["thing"]) == ("n", np.sin, thing)
    np.testing.assert_array_equal(got["v"], X)


def test_sparse_outputs_are_one_leaf():
    """A BCOO comes back batched, as `jax.vmap` gives it."""
    dense = np.array([[0.0, 1.0], [2.0, 0.0]], np.float32)
    value = sparse.BCOO.fromdense(dense, n_batch=1)
    got = sa.vmap(lambda m: m * 2.0, out_axes=0)(value)
    want = jax.vmap(lambda m: m * 2.0)(value)
    np.testing.assert_array_equal(got.todense(), want.todense())
    assert got.n_batch == want.n_batch


@RUNS
def test_a_shared_output_that_varies_is_named(run):
    """Asking for one where there are many is an error that names the place."""
    out = sa.AxesBuilder(default=0)
    out.y = None
    with pytest.raises(sa.BatchError, match=r"output\.y") as caught:
        run(lambda v: Pair(v, v.sum()), out_axes=out)(X)
    (problem,) = caught.value.problems
    assert problem.path == "output.y"
    assert "varies over the batch" in str(caught.value)


@RUNS
@pytest.mark.parametrize("axis", [2, -3, 7])
def test_an_axis_out_of_range_is_named(run, axis):
    """An axis that the batched output does not have names the place and the axis."""
    with pytest.raises(sa.BatchError, match=rf"axis {axis}") as caught:
        run(lambda v: {"s": v.sum()}, out_axes=axis)(X)
    (problem,) = caught.value.problems
    assert problem.path == "output['s']"
    assert problem.axis == axis


@RUNS
def test_more_entries_than_outputs_are_named(run):
    """The entry without an output is named (https://github.com/jax-ml/jax/issues/3613)."""
    with pytest.raises(sa.BatchError, match=r"output is a tuple of 2") as caught:
        run(lambda v: (v, v), out_axes=(0, 0, 1))(X)
    (problem,) = caught.value.problems
    assert "[2]" in problem.path


@RUNS
def test_an_output_that_nobody_decided_is_named(run):
    """A tree that does not reach a leaf of the output is an error."""
    with pytest.raises(sa.BatchError, match="nobody decided") as caught:
        run(lambda v: {"a": v, "b": v}, out_axes={"a": 0})(X)
    (problem,) = caught.value.problems
    assert problem.path == "output['b']"


def test_no_class_is_built_with_axes():
    """A class that computes in its constructor is never given an int."""

    @jax.tree_util.register_pytree_node_class
    class Broadcast:
        def __init__(self, x, y):
            shape = jnp.broadcast_shapes(x.shape, y.shape)
            self.x, self.y = jnp.broadcast_to(x, shape), jnp.broadcast_to(y, shape)

        def tree_flatten(self):
            return (self.x, self.y), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    out = sa.AxesBuilder(default=1)
    got = sa.vmap(lambda v: Broadcast(v, v.sum()), out_axes=out)(X)
    rows = [np.asarray(X[i]) for i in range(3)]
    np.testing.assert_array_equal(got.x, np.stack(rows, 1))
    np.testing.assert_array_equal(got.y, np.stack([r * 0 + r.sum() for r in rows], 1))


@struct.dataclass
class Tagged:
    """A leaf and static data."""

    x: object
    tag: object = struct.field(pytree_node=False, default=None)


@pytest.mark.parametrize("out_axes", [0, sa.AUTO], ids=["axis", "auto"])
@pytest.mark.parametrize("way", [sa.vmap, sa.batch], ids=["vmap", "batch"])
@pytest.mark.parametrize(
    "hide", [lambda x: x, lambda x: [x]], ids=["bare", "in a list"]
)
def test_tracers_in_static_data(way, out_axes, hide):
    """A tracer that would leave the mapping in a static field is named by it."""
    fn = way(lambda v: v.replace(tag=hide(v.x * 2)), out_axes=out_axes)
    with pytest.raises(sa.BatchError, match=r"output\.tag") as caught:
        fn(Tagged(X))
    (problem,) = caught.value.problems
    assert (problem.kind, problem.path) == ("tracer", "output.tag")
    assert str(caught.value) == (
        "the output axes do not fit the output, in 1 place.\n\n"
        "  output.tag  a static field that holds a tracer  "
        "static data must be concrete\n\n"
        "  Fix: make it a leaf, or build the value outside of the transformation"
    )
