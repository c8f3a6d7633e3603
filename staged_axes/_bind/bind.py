"""Record and value -> `BoundAxes`: resolved and checked, or remembered."""

from __future__ import annotations

import time
from typing import Any

from attrs import evolve

from staged_axes._bind.bound import BoundAxes
from staged_axes._record.record import Record
from staged_axes._resolve.fit import fit
from staged_axes._resolve.validate import checked_size
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import kinds
from staged_axes._words.news import Bound
from staged_axes.errors import BindError

REMEMBERED = 4  # values of one record, by how they look


def bind(
    record: Record,
    value: Any,
    *,
    like: Any = None,
    axis_size: int | None = None,
) -> BoundAxes:
    """Resolves a record for a value and checks it against the value's shapes.

    Raises:
      BindError: They do not fit; with every reason.
    """
    begun = time.perf_counter()
    axis_size = checked_size(axis_size, BindError)
    bound = _bound_before(record, value, axis_size) if like is None else None
    if bound is None:
        bound = _bind(record, value, like, axis_size)
    record.listeners.tell(Bound(axes=bound, seconds=time.perf_counter() - begun))
    return bound


def _bound_before(
    record: Record, value: Any, axis_size: int | None
) -> BoundAxes | None:
    """What was bound to a value that looks the same, with this value's static data.

    Equal treedefs may hold static data of other types (`1` and `True` are equal), so
    only what does not depend on it is taken over.
    """
    entries = record.entries()
    recent: tuple[BoundAxes, ...] = record.recent
    known = [bound for bound in recent if bound.entries() is entries]
    if not known:
        return None
    leaves, treedef = _tree.flatten(value)
    there = kinds(leaves)
    for bound in known:
        if bound.holds_for(there, treedef, axis_size):
            return evolve(bound, treedef=treedef)
    return None


def _bind(record: Record, value: Any, like: Any, axis_size: int | None) -> BoundAxes:
    """Binds a value that looks like none that is remembered."""
    entries = record.entries()
    fitted = fit(entries, value, like=like, axis_size=axis_size)
    bound = BoundAxes(
        leaf_axes=fitted.axes,
        batch_size=fitted.batch_size,
        treedef=fitted.treedef,
        entries=entries,
        resolution=fitted.resolution,
        kinds=fitted.kinds,
        keys=fitted.keys,
    )
    if fitted.resolution.is_general:
        record.recent = (bound, *record.recent[: REMEMBERED - 1])
    return bound
