"""What mapping means, without the package: a loop, and `jax.vmap` by hand."""

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from jax.experimental import sparse


def is_sparse(x):
    """Is it one leaf for `jax.vmap`, though it is a node for `jax.tree`?"""
    return isinstance(x, sparse.BCOO)


def flatten(value):
    """Leaves and treedef as `jax.vmap` sees them."""
    return jtu.tree_flatten(value, is_leaf=is_sparse)


def is_array(x):
    """Is it what JAX takes as an array?"""
    if isinstance(x, np.ndarray | np.generic):
        return x.dtype.kind not in "OUS"
    return isinstance(x, jax.Array | int | float | complex) or is_sparse(x)


def example(value, axes, i):
    """The i-th example of a batch; a shared leaf is the very same object."""
    leaves, treedef = flatten(value)
    return treedef.unflatten(
        [
            x if axis is None else _take(x, axis, i)
            for x, axis in zip(leaves, axes, strict=True)
        ]
    )


def _take(x, axis, i):
    if is_sparse(x):
        return sparse.BCOO((x.data[i], x.indices[i]), shape=x.shape[1:])
    at = (slice(None),) * (axis % x.ndim) + (i,)
    # By NumPy, which compiles nothing.
    return x[at] if isinstance(x, np.ndarray) or is_key(x) else jnp.asarray(_np(x)[at])


def is_key(x):
    """Is it an array of typed keys?"""
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def _np(x):
    return np.asarray(x.todense() if is_sparse(x) else x, jnp.result_type(x))


def loop(fn, value, axes, size, out_axis=0):
    """One call for each example, the outputs stacked."""
    outputs = [flatten(fn(example(value, axes, i))) for i in range(size)]
    columns = zip(*(leaves for leaves, _ in outputs), strict=True)
    return outputs[0][1].unflatten([_stack(column, out_axis) for column in columns])


def _stack(column, axis):
    if not is_array(column[0]):
        return column[0]
    if is_key(column[0]):
        return jnp.stack(column, axis)
    return jnp.asarray(np.stack(list(map(_np, column)), axis))


def by_hand(fn, value, axes, size, out_axes=0, **options):
    """`jax.vmap` over the leaves that are mapped, the others closed over."""
    leaves, treedef = flatten(value)
    mapped = [i for i, axis in enumerate(axes) if axis is not None]
    kept = {}

    def of_leaves(parts):
        whole = list(leaves)
        for i, part in zip(mapped, parts, strict=True):
            whole[i] = part
        out, kept["treedef"] = flatten(fn(treedef.unflatten(whole)))
        kept["out"] = out
        return [x for x in out if is_array(x)]

    arrays = iter(
        jax.vmap(
            of_leaves,
            in_axes=([axes[i] for i in mapped],),
            out_axes=out_axes,
            axis_size=size,
            **options,
        )([leaves[i] for i in mapped])
    )
    return kept["treedef"].unflatten(
        [next(arrays) if is_array(x) else x for x in kept["out"]]
    )


def facts(x):
    """What JAX knows of an array, its numbers apart."""
    if is_sparse(x):
        return "sparse", x.shape, facts(x.data)
    if not is_array(x):
        return None
    dtype = getattr(x, "dtype", type(x))
    return str(dtype), np.shape(x), bool(getattr(x, "weak_type", False))


def assert_same(got, want):
    """The same structure, and leaf by leaf the same shape, dtype, weakness, numbers."""
    (a, a_def), (b, b_def) = flatten(got), flatten(want)
    assert a_def == b_def
    assert list(map(facts, a)) == list(map(facts, b))
    for x, y in zip(a, b, strict=True):
        if is_array(y):
            np.testing.assert_allclose(numbers(x), numbers(y), rtol=1e-6)
        else:
            assert x is y


def assert_close(got, want):
    """The same structure, shapes, dtypes and numbers; a loop knows no weak types."""
    (a, a_def), (b, b_def) = flatten(got), flatten(want)
    assert a_def == b_def
    for x, y in zip(a, b, strict=True):
        if not is_array(y):
            assert x is y
            continue
        assert (jnp.shape(x), jnp.result_type(x)) == (jnp.shape(y), jnp.result_type(y))
        np.testing.assert_allclose(numbers(x), numbers(y), rtol=1e-5, atol=1e-6)


def numbers(x):
    """The numbers in an array of any kind."""
    if is_sparse(x):
        x = x.todense()
    if is_key(x):
        return np.asarray(jax.random.key_data(x), np.float64)
    plain = np.asarray(x)
    if plain.dtype == jax.dtypes.float0:  # no numbers in it; NumPy 1 cannot cast it
        return np.zeros(plain.shape)
    return plain.astype(np.complex128 if plain.dtype.kind == "c" else np.float64)
