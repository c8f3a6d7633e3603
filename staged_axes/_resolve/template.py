"""A value against the value of one example, as `like=` gives it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from staged_axes._resolve.misses import Decider, problem
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import Shape, shape_of
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes.errors import Problem


def against_template(
    axes: Sequence[int | None],
    batch_size: int | None,
    deciders: Sequence[Decider],
    leaves: Iterable[tuple[Path, Any]],
    template: Any,
    root: str,
    known: Iterable[Problem],
) -> list[Problem]:
    """Mapped leaves must have the template's shape with the axis put in; shared, as is.

    Args:
      axes: Those of the leaves, counted from the front.
      batch_size: The size of the mapped ones.
      deciders: Who decided.
      leaves: Path and object of each.
      template: The value of one example. Its static data is not read.
      root: What the value is called in code.
      known: What is wrong already: about those leaves nothing more is said.
    """
    one = dict(_tree.leaves_by_path(template, "template"))
    problems = []
    for (path, leaf), axis, decider in zip(leaves, axes, deciders, strict=True):
        there = shape_of(leaf)
        if path not in one:
            problems.append(
                problem(
                    "structure",
                    code(path, root),
                    decider,
                    there=short(leaf),
                    asked="the template has no such leaf",
                    fix="give a template of the value's structure",
                )
            )
            continue
        single = shape_of(one.pop(path))
        if there is None or single is None:
            continue
        wanted = single
        if axis is not None and batch_size is not None:
            wanted = (*single[:axis], batch_size, *single[axis:])
        if there != wanted:
            problems.append(
                _shape(path, leaf, axis, decider, there, single, wanted, root)
            )
    problems += [
        problem(
            "structure",
            code(path, root),
            None,
            there="no such leaf",
            asked=f"the template has {short(leaf)} there",
            fix="give a template of the value's structure",
        )
        for path, leaf in one.items()
    ]
    paths = {each.path for each in known}
    return [each for each in problems if each.path not in paths]


def _shape(
    path: Path,
    leaf: Any,
    axis: int | None,
    decider: Decider,
    there: Shape,
    single: Shape,
    wanted: Shape,
    root: str,
) -> Problem:
    """The problem of a leaf whose shape is not the template's."""
    added = [k for k in range(len(there)) if there[:k] + there[k + 1 :] == single]
    if axis is None and added:
        fix = f"it has a batch axis: {code(path)} = {added[0]}"
    elif axis is not None and there == single:
        fix = f"it has no batch axis: {code(path)} = None, or give it one"
    else:
        fix = f"make its shape {wanted}"
    how = "shared" if axis is None else f"axis {axis}"
    return problem(
        "shape",
        code(path, root),
        decider,
        there=short(leaf),
        asked=f"{how}: the template {single} asks for {wanted}",
        axis=axis,
        shape=there,
        fix=fix,
    )
