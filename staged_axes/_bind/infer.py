"""The record that two values imply: one example, and a batch of such examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from staged_axes._bind.builder import AxesBuilder
from staged_axes._record.axes import AXES
from staged_axes._record.record import Record
from staged_axes._resolve.fit import fit
from staged_axes._resolve.misses import problem
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import shape_of
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes.errors import Problem, unfit


def infer(template: Any, batched: Any, *, axis: int | None = None) -> AxesBuilder:
    """The builder that says which leaves of `batched` have a batch axis, and where.

    A leaf of one shape in both is shared; a mapped one has exactly one axis more. Only
    shapes are read, and static data may differ.

    Args:
      template: The value of one example.
      batched: A batch of such examples. Not changed.
      axis: The axis of leaves whose shapes allow several, as from `(3,)` to `(3, 3)`.

    Returns:
      A builder with one decision for each subtree that is mapped on one axis, and the
      default None; where every leaf is mapped on one axis, that axis is the default.

    Raises:
      BindError: A leaf is on one side only, its shapes do not differ by one axis, they
        allow several, or sizes differ; with every reason.
      RecordError: `axis` is none.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> one = {"gain": np.ones(2), "net": {"b": np.ones(3), "w": np.ones((2, 3))}}
      >>> net = {"b": np.ones((5, 3)), "w": np.ones((5, 2, 3))}
      >>> print(sa.infer(one, {"gain": np.ones(2), "net": net}))
      AxesBuilder, default None
      <BLANKLINE>
      stage  place        axis  decided at
             spec['net']  0     ...
    """
    preferred = None if axis is None else AXES.check(axis, "axis")
    singles = dict(_tree.units(template, lambda _: False))
    leaves, treedef = _tree.flatten(batched)
    axes: list[int | None] = []
    problems: list[Problem] = []
    for path, leaf in zip(_tree.paths(batched), leaves, strict=True):
        if path not in singles:
            problems.append(_unlike(path, f"{short(leaf)} in the batch", "template"))
            continue
        single = singles.pop(path)
        found = _inserted(single, leaf)
        if preferred is not None and len(found) > 1:
            ndim = len(shape_of(leaf) or ())
            found = [k for k in found if k in (preferred, preferred + ndim)] or found
        if len(found) != 1:
            problems.append(_unclear(path, single, leaf, found))
        axes += found[:1]
    problems += [
        _unlike(path, f"{short(leaf)} in the template", "batch")
        for path, leaf in singles.items()
    ]
    if problems:
        raise unfit(problems)
    everywhere = axes[0] if len(set(axes)) == 1 else None
    builder = AxesBuilder(default=everywhere)
    if everywhere is None:
        _decide(builder.__record__, (), batched, treedef, axes)
    fit(builder.__record__.entries(), batched)
    return builder


def _inserted(single: Any, leaf: Any) -> list[int | None]:
    """The axes that a leaf may have more than its template: `[None]` for none."""
    one, many = shape_of(single), shape_of(leaf)
    if one == many:
        return [None]
    if one is None or many is None:
        return []
    return [k for k in range(len(many)) if many[:k] + many[k + 1 :] == one]


def _decide(
    record: Record, path: Path, node: Any, treedef: Any, axes: Sequence[int | None]
) -> None:
    """Records one decision for each largest subtree that is mapped on one axis."""
    if set(axes) == {None}:
        return
    if len(set(axes)) == 1:
        record.decide(path, axes[0])
        return
    start = 0
    below = _tree.children(node)
    for step, child, inner in zip(
        below.steps, below.values, treedef.children(), strict=True
    ):
        stop = start + inner.num_leaves
        if stop > start:
            _decide(record, (*path, step), child, inner, axes[start:stop])
        start = stop


def _unclear(
    path: Path, single: Any, leaf: Any, found: Sequence[int | None]
) -> Problem:
    """The problem of a leaf whose shapes do not say its axis."""
    if found:
        axes = " or ".join(map(str, found))
        return problem(
            "ambiguous",
            code(path, "value"),
            None,
            there=f"{short(leaf)}, and {short(single)} in the template",
            asked=f"its axis may be {axes}",
            shape=shape_of(leaf),
            fix=f"sa.infer(template, batched, axis={found[0]}) says which, where "
            "several are possible",
        )
    return problem(
        "inserted",
        code(path, "value"),
        None,
        there=f"{short(leaf)}, and {short(single)} in the template",
        asked="not one axis more",
        shape=shape_of(leaf),
        fix="a mapped leaf has the template's shape with one axis put in",
    )


def _unlike(path: Path, there: str, other: str) -> Problem:
    """The problem of a leaf that is on one side only."""
    return problem(
        "unlike",
        code(path, "value"),
        None,
        there=there,
        asked=f"no such leaf in the {other}",
        fix="give two values that are built alike",
    )
