"""Random values and decisions: as the explicit loop does, and as `jax.vmap` by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
from oracle import assert_same, by_hand, is_key, loop, numbers
from strategies import cases


def recorded(case, order=None, stages=False):
    """The builder that says what the case says."""
    spec = sa.AxesBuilder(default=case.default)
    for path in order or case.decisions:
        place = functools.reduce(lambda at, name: at[name], path[:-1], spec)
        if stages:
            with spec.stage(f"stage of {path}"):
                place[path[-1]] = case.decisions[path]
        else:
            place[path[-1]] = case.decisions[path]
    return spec


def per_leaf(value):
    """A function of one example whose output has every leaf in it, and the value."""

    def of(x):
        if is_key(x):
            return jax.random.key_data(x).sum(axis=-1).astype(jnp.float32)
        return jnp.sum(x) if jnp.asarray(x).dtype == bool else x * 2

    return [of(x) for x in jax.tree_util.tree_leaves(value)], value


def leaves_of(tree):
    """The leaves of an output."""
    return jax.tree_util.tree_leaves(tree)


@given(cases())
def test_vmap_is_the_loop_and_is_jax(case):
    """Values, shapes, dtypes and weak types; the structure comes back as it went."""
    leaves, treedef = jax.tree_util.tree_flatten(case.value)
    got = sa.vmap(per_leaf, in_axes=(recorded(case),))(case.value)
    assert jax.tree_util.tree_structure(got[1]) == treedef
    assert_same(leaves_of(got), by_hand(per_leaf, leaves, case.axes, treedef))
    want = loop(per_leaf, leaves, case.axes, treedef, case.size)
    for a, b in zip(leaves_of(got), want, strict=True):
        np.testing.assert_array_equal(numbers(a), numbers(b))


@given(cases())
def test_bind_gives_the_axes(case):
    """One axis for each leaf, counted from the front, and the batch size."""
    bound = recorded(case).bind(case.value)
    leaves = leaves_of(case.value)
    want = [
        None if axis is None else axis % x.ndim
        for x, axis in zip(leaves, case.axes, strict=True)
    ]
    assert list(bound.leaf_axes) == want
    assert bound.batch_size == case.size
    assert recorded(case).bind(case.value) == bound


@given(cases())
def test_shapes_are_enough(case):
    """Abstract values bind as concrete ones do."""
    abstract = jax.eval_shape(lambda: case.value)
    bound = recorded(case).bind(abstract)
    assert bound.leaf_axes == recorded(case).bind(case.value).leaf_axes


@given(cases(), st.data())
def test_stages_in_any_order(case, data):
    """Each decision in a stage of its own: the order of the stages changes nothing."""
    order = data.draw(st.permutations(list(case.decisions)))
    want = recorded(case, stages=True).bind(case.value).leaf_axes
    assert recorded(case, order, stages=True).bind(case.value).leaf_axes == want


@given(cases())
def test_the_record_as_text(case):
    """A record that went through JSON says the same."""
    spec = recorded(case, stages=True)
    again = sa.AxesBuilder.from_json(spec.to_json())
    assert again.bind(case.value).leaf_axes == spec.bind(case.value).leaf_axes


@given(cases())
def test_jit_and_batch(case):
    """Under `jit`, and through `batch`, the same comes out."""
    spec = recorded(case)
    leaves, treedef = jax.tree_util.tree_flatten(case.value)
    want = by_hand(per_leaf, leaves, case.axes, treedef)
    flat = jax.jit(
        lambda parts: leaves_of(sa.vmap(per_leaf, (spec,))(treedef.unflatten(parts)))
    )
    assert_same(flat(leaves), want)
    assert_same(leaves_of(sa.batch(per_leaf, (spec,))(case.value)), want)


@given(cases(), st.integers(1, 3))
def test_two_deep(case, outer):
    """A map in a map, the outer one over copies of everything that is mapped."""
    spec = recorded(case)
    leaves, treedef = jax.tree_util.tree_flatten(case.value)

    scales = jnp.arange(1.0, outer + 1)

    def scaled(scale, value):
        return [x.sum() * scale for x in leaves_of(value) if not is_key(x)]

    ours = sa.vmap(lambda s: sa.vmap(scaled, in_axes=(None, spec))(s, case.value))(
        scales
    )
    hand = [
        by_hand(functools.partial(scaled, s), leaves, case.axes, treedef)
        for s in scales
    ]
    for got, want in zip(ours, zip(*hand, strict=True), strict=True):
        np.testing.assert_allclose(got, np.stack(want), rtol=1e-6)


def smooth(v):
    """A function to differentiate."""
    return jnp.sum(jnp.sin(v["x"]) * v["scale"])


VALUE = {"x": jnp.arange(6.0).reshape(3, 2), "scale": jnp.array(2.0)}


def shared_scale():
    """All mapped but the scale."""
    spec = sa.AxesBuilder(default=0)
    spec.scale = None
    return spec


def total(v):
    """The sum over the batch."""
    return sa.vmap(smooth, (shared_scale(),))(v).sum()


def by_loop(v):
    """The same, in a loop."""
    return sum(smooth({"x": v["x"][i], "scale": v["scale"]}) for i in range(3))


@pytest.mark.parametrize(
    "transform",
    [
        jax.grad,
        jax.jacfwd,
        lambda f: jax.grad(jax.checkpoint(f)),
        lambda f: jax.jit(jax.grad(f)),
        lambda f: lambda v: jax.jvp(f, (v,), (v,)),
        lambda f: lambda v: jax.lax.scan(lambda c, _: (c, f(c)), v, None, length=2)[1],
    ],
    ids=["grad", "jacfwd", "checkpoint", "jit", "jvp", "scan"],
)
def test_under_transformations(transform):
    """Differentiated, checkpointed, compiled, scanned."""
    got, want = transform(total)(VALUE), transform(by_loop)(VALUE)
    for a, b in zip(leaves_of(got), leaves_of(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_collectives():
    """`axis_name` serves `psum` and `axis_index`."""
    fn = lambda x: (jax.lax.psum(x, "i"), jax.lax.axis_index("i"))  # noqa: E731
    got = sa.vmap(fn, axis_name="i")(jnp.arange(4.0))
    want = jax.vmap(fn, axis_name="i")(jnp.arange(4.0))
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_size_where_nothing_is_mapped(size):
    """`axis_size` makes as many examples as it says."""
    got = sa.vmap(lambda x: x * 2, in_axes=None, axis_size=size)(jnp.array([1.0, 2.0]))
    want = jax.vmap(lambda x: x * 2, None, axis_size=size)(jnp.array([1.0, 2.0]))
    np.testing.assert_array_equal(got, want)
    assert got.shape == (size, 2)
