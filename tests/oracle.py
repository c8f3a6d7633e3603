"""The reference: an explicit Python loop over the batch, and `jax.vmap` by hand.

Nothing here uses the package. Both take the leaves of a value and one axis for each,
found without it too.
"""

import jax
import jax.numpy as jnp
import numpy as np


def is_key(x):
    """Is it an array of typed PRNG keys?"""
    return jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key)


def numbers(x):
    """The numbers in an array, those of keys too."""
    return np.asarray(jax.random.key_data(x) if is_key(x) else x, np.float64)


def example(leaves, axes, i):
    """The leaves of example i."""
    return [
        x if axis is None else x[(slice(None),) * (axis % x.ndim) + (i,)]
        for x, axis in zip(leaves, axes, strict=True)
    ]


def loop(fn, leaves, axes, treedef, size):
    """The outputs of `fn`, one example after the other, stacked in front."""
    outs = [
        jax.tree_util.tree_leaves(fn(treedef.unflatten(example(leaves, axes, i))))
        for i in range(size)
    ]
    return [jnp.stack(list(column)) for column in zip(*outs, strict=True)]


def by_hand(fn, leaves, axes, treedef):
    """`jax.vmap` over the flat leaves, with axes that are written out."""

    def flat(parts):
        return jax.tree_util.tree_leaves(fn(treedef.unflatten(parts)))

    return jax.vmap(flat, in_axes=(list(axes),))(list(leaves))


def assert_same(got, want):
    """Equal in number, shape, dtype, weak type and value."""
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        assert getattr(a, "weak_type", False) == getattr(b, "weak_type", False)
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=1e-6)
