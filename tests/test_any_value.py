"""`sa.vmap` is a loop, and `jax.vmap` with axes made by hand, whatever the value."""

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
from hypothesis import given, strategies as st

import staged_axes as sa
from any_cases import cases
from any_oracle import (
    assert_close,
    assert_same,
    by_hand,
    flatten,
    is_array,
    is_key,
    is_sparse,
    loop,
)


def digest(value):
    """Something of every array of one example, and the example itself."""
    parts = [_digest_one(x) for x in flatten(value)[0] if is_array(x)]
    return {"itself": value, "parts": parts, "fixed": jnp.ones(2)}


def _digest_one(x):
    """A computation that takes arrays of every kind."""
    if is_sparse(x):
        return x.todense()
    return jax.random.key_data(x) if is_key(x) else x + x


@given(cases(), st.sampled_from([0, -1]))
def test_vmap_is_a_loop(case, out_axis):
    """One call over the batch gives what one call for each example gives."""

    def fn(value):
        return _dense(digest(value))

    mapped = sa.vmap(fn, in_axes=(case.spec(),), out_axes=out_axis, axis_size=case.size)
    want = loop(fn, case.value, case.axes, case.size, out_axis)
    assert_close(mapped(case.value), want)


def _dense(tree):
    """The tree with its sparse leaves made dense; a loop cannot stack them."""
    return jtu.tree_map(
        lambda x: x.todense() if is_sparse(x) else x, tree, is_leaf=is_sparse
    )


@given(cases())
def test_vmap_is_jax_vmap(case):
    """The result is the very one of `jax.vmap`, weak types included."""
    mapped = sa.vmap(digest, in_axes=(case.spec(),), axis_size=case.size)
    assert_same(mapped(case.value), by_hand(digest, case.value, case.axes, case.size))


@given(cases(sizes=(0, 2)))
def test_vmap_under_jit_is_jax_vmap(case):
    """Traced leaves give the same, for an empty batch too."""
    leaves, treedef = flatten(case.value)
    arrays = [i for i, x in enumerate(leaves) if is_array(x) and not is_sparse(x)]

    def under_jit(run):
        @jax.jit
        def call(parts):
            whole = list(leaves)
            for i, part in zip(arrays, parts, strict=True):
                whole[i] = part
            out = run(treedef.unflatten(whole))
            return out["parts"], out["fixed"]

        return call([leaves[i] for i in arrays])

    mapped = sa.vmap(digest, in_axes=(case.spec(),), axis_size=case.size)
    assert_same(
        under_jit(mapped),
        under_jit(lambda value: by_hand(digest, value, case.axes, case.size)),
    )


@given(cases())
def test_auto_maps_what_varies(case):
    """With `AUTO` an input comes back as it went in: mapped, or shared, untouched."""
    mapped = sa.vmap(
        lambda a: a, in_axes=(case.spec(),), out_axes=sa.AUTO, axis_size=case.size
    )
    out = flatten(mapped(case.value))[0]
    for x, y, axis in zip(flatten(case.value)[0], out, case.axes, strict=True):
        if axis is None:
            assert x is y
        else:
            moved = x if is_sparse(x) else jnp.moveaxis(x, axis, 0)
            assert_same(y, moved)


@given(cases(), st.data())
def test_two_deep(case, data):
    """A map inside a map, each with its own record, is two of JAX's."""
    outer_size = data.draw(st.integers(1, 2))
    leaves, treedef = flatten(case.value)
    outer_axes, stacked = [], []
    for x in leaves:
        can = is_array(x) and not is_sparse(x) and hasattr(x, "ndim")
        axis = data.draw(st.sampled_from([None, 0, -1])) if can else None
        outer_axes.append(axis)
        stacked.append(x if axis is None else jnp.stack([x] * outer_size, axis))
    value = treedef.unflatten(stacked)
    outer = sa.AxesBuilder.from_tree(treedef.unflatten(outer_axes))
    inner = sa.vmap(digest, in_axes=(case.spec(),), axis_size=case.size)
    got = sa.vmap(inner, in_axes=(outer,), axis_size=outer_size)(value)
    want = by_hand(
        lambda v: by_hand(digest, v, case.axes, case.size),
        value,
        outer_axes,
        outer_size,
    )
    assert_same(got, want)


@given(cases())
def test_bind_gives_the_axes(case):
    """`bind` tells the axis of each leaf, from the front, and keeps the structure."""
    bound = case.spec().bind(case.value, axis_size=case.size)
    leaves, _ = flatten(case.value)
    assert bound.leaf_axes == tuple(
        None if axis is None else axis % len(x.shape)
        for x, axis in zip(leaves, case.axes, strict=True)
    )
    assert bound.batch_size == case.size
    shapes = [getattr(x, "shape", ()) for x in leaves]
    again = case.spec().bind(case.value, axis_size=case.size)
    assert again.leaf_axes == bound.leaf_axes
    assert str(again) == str(bound)
    assert [getattr(x, "shape", ()) for x in leaves] == shapes
