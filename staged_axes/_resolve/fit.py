"""Entries and a value -> one checked axis for each leaf, or every reason why not."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from staged_axes._record.axes import AXES
from staged_axes._record.decisions import Entries
from staged_axes._resolve import validate as _validate
from staged_axes._resolve.resolve import Resolution, resolve
from staged_axes._resolve.template import against_template
from staged_axes._structure import tracers as _tracers, tree as _tree
from staged_axes._structure.leaves import Kinds, kinds
from staged_axes._words.paths import code
from staged_axes.errors import Problem, unfit


@frozen(kw_only=True)
class Fit:
    """A value that the entries fit.

    Attributes:
      leaves: In flatten order.
      treedef: The structure, with its static data.
      axes: An axis, counted from the front, or None for each leaf.
      batch_size: How many examples there are; None for a value without leaves.
      resolution: What was decided for each leaf, and by whom.
      kinds: What each leaf is, its data apart.
      keys: The path of each leaf, in JAX's own keys.
    """

    leaves: list[Any]
    treedef: Any
    axes: tuple[int | None, ...]
    batch_size: int | None
    resolution: Resolution
    kinds: Kinds
    keys: tuple[Any, ...]


def fit(
    entries: Entries,
    value: Any,
    *,
    leaves: list[Any] | None = None,
    like: Any = None,
    axis_size: int | None = None,
) -> Fit:
    """Resolves the entries for a value and checks them against the value's shapes.

    Args:
      entries: What was decided.
      value: The value.
      leaves: To be looked at in place of those in the value.
      like: The value of one example.
      axis_size: The batch size, where the user gives it.

    Raises:
      BindError: They do not fit; with every reason.
    """
    own, treedef, keys = _tree.flatten_with_keys(value)
    leaves = own if leaves is None else leaves
    resolved = resolve(entries, AXES, value, leaves, treedef)
    there = kinds(leaves)
    checked = _validate.check(
        there,
        resolved.payloads,
        resolved.deciders,
        lambda i: _validate.Place("value", tuple(map(_tree.step_of, keys[i]))),
        axis_size=axis_size,
    )
    problems = [
        *resolved.problems,
        *traced(value, treedef, "value"),
        *checked.problems,
    ]
    if leaves and checked.batch_size is None and not problems:
        problems += _validate.nothing_mapped(["value"] * len(leaves), resolved.deciders)
    if like is not None and not (leaves and checked.batch_size is None):
        paths = (tuple(map(_tree.step_of, each)) for each in keys)
        problems += against_template(
            checked.axes,
            checked.batch_size,
            resolved.deciders,
            zip(paths, leaves, strict=True),
            like,
            "value",
            problems,
        )
    if problems:
        raise unfit(problems)
    return Fit(
        leaves=leaves,
        treedef=treedef,
        axes=checked.axes,
        batch_size=checked.batch_size,
        resolution=resolved,
        kinds=there,
        keys=keys,
    )


def traced(value: Any, treedef: Any, root: str) -> list[Problem]:
    """A problem for each static field that holds a tracer."""
    return [
        Problem(
            kind="tracer",
            path=code(path, root) + ("" if name[0] == "(" else ".") + name,
            there="a static field that holds a tracer",
            asked="static data must be concrete",
            fix="make it a leaf, or build the value outside of the transformation",
        )
        for path, name in _tracers.traced_statics(value, treedef)
    ]
