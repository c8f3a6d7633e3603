"""One leaf and its members: one example out of a batch, one into it, many into one.

NumPy arrays and Python numbers give NumPy arrays; everything else is JAX's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from staged_axes._resolve.misses import Decider, problem
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import shape_of
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes.errors import Problem

# JAX compiles a concatenation anew for each number of operands, and slowly for many
# (5 s for 1,024 of them with JAX 0.12.0 on a CPU), so many are joined in groups.
GROUP = 64


def is_numpy(x: Any) -> bool:
    """Is it an array of NumPy, or a Python number?"""
    return isinstance(x, np.ndarray | np.generic | bool | int | float | complex)


def dtype_of(x: Any) -> Any:
    """The dtype of anything that can be mapped."""
    if isinstance(x, bool | int | float | complex):
        return np.asarray(x).dtype
    return x.dtype


def are_of_one_kind(a: Any, b: Any) -> bool:
    """Are both bools, signed, unsigned, real or complex numbers, or keys of a kind?"""
    return bool(_kind(dtype_of(a)) == _kind(dtype_of(b)))


def can_hold(x: Any, part: Any) -> bool:
    """Does the dtype of a batch hold the numbers of an example, but for rounding?"""
    if isinstance(part, jax.core.Tracer) or dtype_of(x) == dtype_of(part):
        return True
    with np.errstate(over="ignore"):
        cast = np.asarray(part).astype(dtype_of(x))
    if jnp.issubdtype(cast.dtype, jnp.inexact):
        return bool((np.isinf(cast) == np.isinf(part)).all())
    return bool((cast == np.asarray(part)).all())


def _kind(dtype: Any) -> Any:
    """The family of a dtype."""
    if jnp.issubdtype(dtype, jax.dtypes.extended):
        return dtype
    families = (
        np.bool_,
        jnp.signedinteger,
        jnp.unsignedinteger,
        jnp.floating,
        jnp.complexfloating,
    )
    return next((f for f in families if jnp.issubdtype(dtype, f)), None)


def why_whole(x: Any) -> str:
    """Why the members of a mapped leaf cannot be had one by one; empty where they can.

    Source:
      https://github.com/jax-ml/jax/issues/22679
    """
    if _tree.is_vmappable(x):
        return f"{type(x).__name__} keeps its shape as static data (a static shape)"
    if isinstance(x, jax.ShapeDtypeStruct):
        return "it is abstract: there is no data in it"
    return ""


def whole(path: Path, leaf: Any, axis: int, decider: Decider) -> Problem:
    """The problem of a mapped leaf that cannot be taken apart or put together."""
    return problem(
        "whole",
        code(path, "value"),
        decider,
        there=short(leaf),
        asked=why_whole(leaf),
        axis=axis,
        shape=shape_of(leaf),
        fix=f"to share it:  {code(path)} = None\n"
        + (
            "for shapes alone:  jax.eval_shape(fn, batched)"
            if isinstance(leaf, jax.ShapeDtypeStruct)
            else "sa.vmap(fn, ...) hands out its members by JAX's own rule"
        ),
    )


def member(x: Any, axis: int, k: Any) -> Any:
    """Example k. Of a NumPy array it is a view."""
    if is_numpy(x) and isinstance(k, int):
        return x[_at(axis, k)]
    # One compiled program for all k, where `x[k]` may take one for each.
    return jax.lax.dynamic_index_in_dim(x, k, axis, keepdims=False)


def with_member(x: Any, axis: int, k: Any, part: Any) -> Any:
    """The batch with example k replaced; `x` itself stays as it was."""
    if is_numpy(x) and is_numpy(part) and isinstance(k, int):
        changed = np.array(x)
        changed[_at(axis, k)] = part
        return changed
    x = jnp.asarray(x)
    part = jnp.asarray(part)
    part = part if part.dtype == x.dtype else part.astype(x.dtype)
    return jax.lax.dynamic_update_index_in_dim(x, part, k, axis)


def join(parts: Sequence[Any], axis: int) -> Any:
    """One batch of all the examples."""
    if all(map(is_numpy, parts)):
        return np.stack(parts, axis)
    if len(parts) <= GROUP:
        return jnp.stack([jnp.asarray(part) for part in parts], axis)
    size = -(-len(parts) // GROUP)
    groups = [join(parts[i : i + size], axis) for i in range(0, len(parts), size)]
    return jnp.concatenate([jnp.asarray(group) for group in groups], axis)


def repeat(x: Any, axis: int, n: int) -> Any:
    """A batch of n equal examples; of a NumPy array a view, which takes no memory."""
    numpy: Any = np if is_numpy(x) else jnp
    x = numpy.asarray(x)
    shape = (*x.shape[:axis], n, *x.shape[axis:])
    return numpy.broadcast_to(numpy.expand_dims(x, axis), shape)


def _at(axis: int, k: int) -> tuple[Any, ...]:
    """The index of example k; it gives an array, also one without axes."""
    return (*[slice(None)] * axis, k, ...)
