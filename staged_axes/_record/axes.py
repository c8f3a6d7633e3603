"""What a decision about an axis may be: an int, None, or a way to find out at bind."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from attrs import frozen

from staged_axes._record.decisions import UNDECIDED, Mounted
from staged_axes._words.display import short
from staged_axes.errors import Problem, RecordError, error, with_article


class Static(enum.Enum):
    """The type of `STATIC`."""

    STATIC = "STATIC"

    def __repr__(self) -> str:
        return "sa.STATIC"


STATIC = Static.STATIC
"""Shared, and kept as the Python value it is: usable in `if`, part of the key."""


@frozen
class PerLeaf:
    """An axis that is worked out from each leaf, when the value is bound."""

    fn: Callable[[Any], int | None]


@frozen
class FromNode:
    """An axis that is worked out from the node at the place, at bind."""

    fn: Callable[[Any], int | None]


@frozen
class Optional:
    """A decision that is no fault where nothing in the value answers to it."""

    payload: Any


def per_leaf(fn: Callable[[Any], int | None]) -> PerLeaf:
    """Decides at bind, from each leaf.

    Args:
      fn: From a leaf (an array, a tracer, a `jax.ShapeDtypeStruct`, a string, ...) to
        an axis or None.

    Raises:
      RecordError: `fn` cannot be called.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.opt = sa.per_leaf(lambda leaf: 0 if leaf.ndim > 1 else None)
      >>> spec.bind({"opt": [np.ones((3, 2)), np.ones(2)]}).leaf_axes
      (0, None)
    """
    return PerLeaf(_callable(fn, "per_leaf"))


def from_node(fn: Callable[[Any], int | None]) -> FromNode:
    """Decides at bind, from the concrete node and its static data.

    For a default the node is the whole value, for a rule each leaf that it matches.

    Args:
      fn: From the node at the place to the axis of all its leaves, or None.

    Raises:
      RecordError: `fn` cannot be called.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.win = sa.from_node(lambda node: 0 if len(node) > 1 else None)
      >>> spec.bind({"win": [np.ones(3)], "x": np.ones(3)}).leaf_axes
      (None, 0)
    """
    return FromNode(_callable(fn, "from_node"))


def optional(axis: Any) -> Optional:
    """A decision for a place that may be absent.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.extra = sa.optional(None)
      >>> spec.bind({"x": np.ones(3)}).leaf_axes
      (0,)
    """
    return axis if isinstance(axis, Optional) else Optional(axis)


def _callable(fn: Any, name: str) -> Any:
    """`fn`, where it can be called."""
    if callable(fn):
        return fn
    raise error(
        RecordError,
        f"{name} takes a function, not {with_article(short(fn))}.",
        Problem(kind="payload", path=f"sa.{name}(...)", there=short(fn)),
        fixes=[f"sa.{name}(lambda x: 0 if ... else None)"],
    )


class AxisForm:
    """The form of `AxesBuilder`: the payload is an axis, or a way to find one."""

    word = "axis"
    constants: Mapping[str, Any] = MappingProxyType({"static": STATIC})
    functions: Mapping[str, Any] = MappingProxyType(
        {"per_leaf": PerLeaf, "from_node": FromNode}
    )

    def check(self, payload: Any, place: str, target: str = "") -> Any:
        """The axis as a plain int, None, or one of the late forms.

        Args:
          payload: What the user gave.
          place: For what it was given, as code.
          target: What it can be assigned to, as code; the place unless it is given.

        Raises:
          RecordError: It is no axis. Bools, floats, arrays and tuples are none.
        """
        if payload is None or payload is STATIC:
            return payload
        if isinstance(payload, PerLeaf | FromNode | Mounted):
            return payload
        if isinstance(payload, int | np.integer) and not isinstance(payload, bool):
            return int(payload)
        raise error(
            RecordError,
            f"an axis is an int or None, and {place} was given "
            f"{with_article(short(payload))}.",
            Problem(kind="payload", path=place, there=short(payload)),
            fixes=[_better(payload, target or place)],
        )

    def text(self, payload: Any) -> str:
        """The axis as code."""
        if isinstance(payload, PerLeaf | FromNode):
            kind = "per_leaf" if isinstance(payload, PerLeaf) else "from_node"
            return f"sa.{kind}({getattr(payload.fn, '__qualname__', '...')})"
        return "a mounted builder" if isinstance(payload, Mounted) else repr(payload)


AXES = AxisForm()


def _better(payload: Any, place: str) -> str:
    """What somebody who wrote `payload` most likely wants."""
    if payload is UNDECIDED:
        return f"to take a decision back:  del {place}"
    if isinstance(payload, bool | np.bool_):
        return f"{place} = 0 for mapped, {place} = None for shared"
    if isinstance(payload, tuple | list):
        return (
            "to map over two axes, map twice: sa.vmap(sa.vmap(fn, ...), ...); "
            f"for the items of a container: {place}[0] = ..."
        )
    if isinstance(payload, dict):
        return f"{place} = sa.AxesBuilder.from_tree({{...}})"
    if callable(payload) and not isinstance(payload, type):
        return f"{place} = sa.per_leaf(fn) decides from each leaf"
    return f"{place} = 0, or None for shared"
