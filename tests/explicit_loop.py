"""The reference: a Python loop over the batch, and results told apart to the last bit.

Nothing of the package is used here, and nothing is mapped, compiled or kept.
"""

import dataclasses
import enum
import zlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

STATIC = "static"


class Unfit(Exception):  # noqa: N818
    """The arguments and the axes do not fit."""


def examples(value, axis_of):
    """The examples of a batched value, one by one, as arrays that are computed with.

    Args:
      value: Any pytree.
      axis_of: From the path of a leaf to its axis, None or `STATIC`.

    Raises:
      Unfit: A mapped leaf lacks its axis, or they are of several lengths.
    """
    rows, treedef = jax.tree_util.tree_flatten_with_path(value)
    leaves = [leaf for _, leaf in rows]
    axes = [axis_of(path) for path, _ in rows]
    mapped = [(x, a) for x, a in zip(leaves, axes, strict=True) if isinstance(a, int)]
    if not all(is_array(x) and -np.ndim(x) <= a < np.ndim(x) for x, a in mapped):
        raise Unfit
    sizes = {np.shape(x)[a] for x, a in mapped}
    if len(sizes) != 1:
        raise Unfit
    return [
        treedef.unflatten([_one(x, a, k) for x, a in zip(leaves, axes, strict=True)])
        for k in range(*sizes)
    ]


def _one(x, axis, k):
    """A leaf as example `k` sees it: as an array, unless it is static or no array."""
    if axis == STATIC or not is_array(x):
        return x
    if axis is None:
        return array(x)
    if is_concrete(x):
        return jnp.asarray(np.asarray(x).take(k, axis))
    return jax.lax.index_in_dim(x, k, axis % x.ndim, keepdims=False)


def is_concrete(x):
    """Can NumPy do what is to be done, without a compile and without a loss?"""
    return not isinstance(x, jax.core.Tracer) and not getattr(x, "weak_type", False)


def array(x):
    """As an array; a number of a class of its own is a number for `jax.vmap`."""
    return jnp.asarray(int(x) if isinstance(x, enum.IntEnum) else x)


def is_array(x):
    """Is it what JAX traces?"""
    plain = (bool, int, float, complex, np.ndarray, np.generic, jax.Array)
    return isinstance(x, plain)


def described(tree):
    """All that can be told of a result, as plain data that differs where results do."""
    children, treedef = jax.tree_util.tree_flatten(tree, lambda x: x is not tree)
    if children and children[0] is tree:
        if not is_array(tree):
            return fingerprint(tree)
        x = jnp.asarray(tree)
        return ("array", str(x.dtype), x.weak_type, x.shape, str(x.tolist()))
    data = treedef.node_data()
    return (
        type(tree).__qualname__,
        fingerprint(data and data[1]),
        *map(described, children),
    )


def stacked(outputs, axis_of):
    """The description of the batched output, from the outputs of all examples.

    Args:
      outputs: One for each example.
      axis_of: From the path of a leaf of the output to its axis.
    """
    rows, treedef = jax.tree_util.tree_flatten_with_path(outputs[0])
    columns = zip(*map(jax.tree_util.tree_leaves, outputs), strict=True)
    leaves = [
        stack(column, axis_of(path))
        for (path, _), column in zip(rows, columns, strict=True)
    ]
    bare = [jax.tree_util.tree_map(lambda _: 0, output) for output in outputs]
    assert len(set(map(described, bare))) == 1
    return described(treedef.unflatten(leaves))


def stack(column, axis):
    """One leaf of all examples as one, of their type; weak where they are."""
    if not is_array(column[0]):
        assert len(set(map(fingerprint, column))) == 1
        return column[0]
    arrays = [array(x) for x in column]
    assert len({(x.dtype, x.weak_type, x.shape) for x in arrays}) == 1
    if axis is None:
        assert len({str(x.tolist()) for x in arrays}) == 1
        return arrays[0]
    if all(map(is_concrete, arrays)):
        return np.stack(arrays, axis)
    # `jnp.stack` makes strong arrays of weak ones; `lax.concatenate` does not.
    axis %= arrays[0].ndim + 1
    return jax.lax.concatenate([jax.lax.expand_dims(x, (axis,)) for x in arrays], axis)


def fingerprint(x):
    """A text that tells static data apart: values with their types, at any depth."""
    return f"{type(x).__qualname__}({','.join(_parts(x))})"


def _parts(x):
    """The texts of what `x` holds."""
    if isinstance(x, enum.Enum):
        return [x.name]
    if isinstance(x, tuple | list):
        return map(fingerprint, x)
    if isinstance(x, dict):
        return [f"{fingerprint(k)}:{fingerprint(v)}" for k, v in x.items()]
    if isinstance(x, set | frozenset):
        return sorted(map(fingerprint, x))
    if isinstance(x, np.ndarray | jax.Array):
        weak = getattr(x, "weak_type", None)
        return [str(x.dtype), str(weak), str(x.shape), str(x.tolist())]
    if dataclasses.is_dataclass(x) or isinstance(x, SimpleNamespace):
        return [fingerprint(vars(x))]
    if callable(x):
        return [getattr(x, "__qualname__", ""), str(id(x))]
    return [repr(x)]


def number(x):
    """A small whole number that tells static data apart; exact in every float type."""
    return zlib.crc32(fingerprint(x).encode()) % 97
