"""What `vmap` sees of leaves: the shape and dtype of an array, else what it is called.

In come leaves of any type; what goes out holds none of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from attrs import Factory, frozen

from staged_axes import _compat
from staged_axes._structure import tree as _tree
from staged_axes._words.display import short

Shape: TypeAlias = tuple[int, ...]


@frozen
class Kinds:
    """What stays of some leaves when their data is gone; equal where they look alike.

    Attributes:
      types: Their types.
      shapes: Their shapes; None for what is no array that JAX takes.
      forms: Their dtypes; a short text for what has none.
      reach: How many leading axes can be mapped, for the few where it is not all.
    """

    types: list[type]
    shapes: list[Shape | None]
    forms: list[Any]
    reach: dict[int, int] = Factory(dict)

    def text(self, i: int) -> str:
        """The short form of one leaf, as `short` gives it."""
        form, shape = self.forms[i], self.shapes[i]
        return form if isinstance(form, str) else _text(shape, form)


@functools.lru_cache(maxsize=1024)
def _text(shape: Shape, dtype: Any) -> str:
    """The short form of an array."""
    return short(jax.ShapeDtypeStruct(shape, dtype))  # type: ignore[no-untyped-call]


def kinds(leaves: Sequence[Any]) -> Kinds:
    """The kinds of leaves; a value of plain arrays is read without a look at each."""
    types = list(map(type, leaves))
    if all(map(_is_array_type, set(types))):
        forms = list(map(attrgetter("dtype"), leaves))
        if all(map(_is_jax_dtype, set(forms))):
            return Kinds(types, list(map(attrgetter("shape"), leaves)), forms)
    both = [_kind(leaf) for leaf in leaves]
    return Kinds(
        types,
        [shape for shape, _ in both],
        [form for _, form in both],
        {i: n for i, leaf in enumerate(leaves) if (n := reach(leaf)) is not None},
    )


def reach(leaf: Any) -> int | None:
    """How many leading axes of a sparse array JAX can map; None for any other leaf."""
    return getattr(leaf, "n_batch", None) if _tree.is_vmappable(leaf) else None


def shape_of(leaf: Any) -> Shape | None:
    """The shape of a leaf that can be mapped; None where JAX takes no such array."""
    return _kind(leaf)[0]


def is_array(leaf: Any) -> bool:
    """Is it something that JAX can trace: an array, a number, or abstract?"""
    return shape_of(leaf) is not None


def _kind(leaf: Any) -> tuple[Shape | None, Any]:
    """The shape and the dtype of one leaf, or what stands for them."""
    if _is_array_type(type(leaf)):
        known = _is_jax_dtype(leaf.dtype)
        return (leaf.shape, leaf.dtype) if known else (None, short(leaf))
    if isinstance(leaf, bool | int | float | complex):
        return (), short(leaf)
    if _tree.is_vmappable(leaf):
        return tuple(leaf.shape), short(leaf)
    return None, short(leaf)


def _is_array_type(cls: type) -> bool:
    """Is it a class of arrays that `jax.vmap` takes?"""
    return issubclass(cls, _compat.ARRAY_TYPES) and not issubclass(
        cls, np.ma.MaskedArray
    )


@functools.lru_cache(maxsize=256)
def _is_jax_dtype(dtype: Any) -> bool:
    """Has JAX arrays of this dtype?"""
    if jnp.issubdtype(dtype, jax.dtypes.extended) or dtype == jax.dtypes.float0:
        return True
    if dtype.kind == "V":  # bfloat16 and its like, or a structure of fields
        return bool(jnp.issubdtype(dtype, np.number))
    widest = 16 if dtype.kind == "c" else 8
    return dtype.kind in "biufc" and dtype.itemsize <= widest
