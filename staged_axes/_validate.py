"""Axes against the shapes that are there: range, one size, the template.

Everything that is wrong is gathered; nothing is raised here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from attrs import frozen

from staged_axes import _tree
from staged_axes._axes import STATIC
from staged_axes._decisions import UNDECIDED
from staged_axes._display import short
from staged_axes._leaves import Kinds, Shape, shape_of
from staged_axes._misses import Decider, problem
from staged_axes._paths import Path, code
from staged_axes.errors import Problem

Places: TypeAlias = Callable[[int], tuple[str, Path]]


@frozen
class Checked:
    """What the shapes say of the axes.

    Attributes:
      axes: One axis for each leaf, counted from the front; None for a shared leaf.
      batch_size: The one size of all mapped axes, None where nothing is mapped.
      problems: Everything that does not fit.
    """

    axes: tuple[int | None, ...]
    batch_size: int | None
    problems: tuple[Problem, ...]


def check(
    kinds: Kinds,
    payloads: Sequence[Any],
    deciders: Sequence[Decider],
    place: Places,
    *,
    axis_size: int | None = None,
) -> Checked:
    """Resolves negative axes and finds what does not fit.

    Args:
      kinds: What is there.
      payloads: What was decided for each leaf.
      deciders: Who decided it.
      place: From the number of a leaf to the name of its value and its path; asked
        only where something is wrong.
      axis_size: The batch size, where the user gives it.
    """
    axes: list[int | None] = [None] * len(kinds.shapes)
    sizes: dict[int, list[int]] = {}
    problems: list[Problem] = []
    for i, (shape, axis) in enumerate(zip(kinds.shapes, payloads, strict=True)):
        if axis is None or axis is STATIC or axis is UNDECIDED:
            continue
        if shape is not None and -len(shape) <= axis < len(shape):
            axes[i] = axis % len(shape)
            sizes.setdefault(shape[axis], []).append(i)
        else:
            there = kinds.text(i)
            problems.append(_no_axis(there, shape, axis, deciders[i], *place(i)))
    expected = axis_size
    if expected is None and sizes:
        expected = max(sizes, key=lambda size: len(sizes[size]))
    if sizes and set(sizes) != {expected}:
        problems += _sizes(
            kinds, axes, sizes, deciders, place, expected, axis_size is not None
        )
    return Checked(tuple(axes), expected, tuple(problems))


def _no_axis(
    there: str,
    shape: Shape | None,
    axis: int,
    decider: Decider,
    root: str,
    path: Path,
) -> Problem:
    """The problem of a leaf that does not have the axis."""
    share = f"{code(path)} = None  shares it"
    if shape is None:
        return problem(
            "not-array",
            code(path, root),
            decider,
            there=there,
            asked=f"axis {axis}, but it is no array",
            axis=axis,
            fix=share,
        )
    return problem(
        "axis",
        code(path, root),
        decider,
        there=there,
        asked=f"axis {axis}, but its shape is {shape}",
        axis=axis,
        shape=shape,
        fix=f"{share}; to map it, give it a batch axis",
    )


def _sizes(
    kinds: Kinds,
    axes: Sequence[int | None],
    sizes: dict[int, list[int]],
    deciders: Sequence[Decider],
    place: Places,
    expected: int | None,
    is_given: bool,
) -> list[Problem]:
    """A row for each leaf whose size is not the expected one, and one that has it."""
    odd = [i for size, rows in sizes.items() if size != expected for i in rows]
    witness = sizes.get(expected or 0, [])[:1] if not is_given else []
    counts = Counter({size: len(rows) for size, rows in sizes.items()})
    problems = []
    for i in [*witness, *sorted(odd)]:
        root, path = place(i)
        axis, shape = axes[i], kinds.shapes[i]
        assert axis is not None
        assert shape is not None
        size = shape[axis]
        wanted = (
            f"axis_size={expected}"
            if is_given
            else f"{expected} in {_count(counts[expected or 0])}"
        )
        problems.append(
            problem(
                "size",
                code(path, root),
                deciders[i],
                there=kinds.text(i),
                asked=f"axis {axis} has size {size}"
                + ("" if i in witness else f", but {wanted}"),
                axis=axis,
                shape=shape,
                fix=""
                if i in witness
                else f"is {code(path, root)} the same for all {expected}? "
                f"Then  {code(path)} = None\n"
                f"otherwise give it {expected} entries along axis {axis}",
            )
        )
    return problems


def _count(n: int) -> str:
    """`1 leaf`, `2 leaves`."""
    return f"{n} leaf" if n == 1 else f"{n} leaves"


def against_template(
    checked: Checked,
    value: Any,
    leaves: Sequence[Any],
    deciders: Sequence[Decider],
    template: Any,
) -> list[Problem]:
    """Mapped leaves must have the template's shape with the axis put in; shared, as is.

    Static data of the template is not read.
    """
    one = dict(_tree.units(template, lambda _: False))
    problems = []
    for path, leaf, axis, decider in zip(
        _tree.paths(value), leaves, checked.axes, deciders, strict=True
    ):
        there = shape_of(leaf)
        if path not in one:
            problems.append(
                problem(
                    "structure",
                    code(path, "value"),
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
        if axis is not None and checked.batch_size is not None:
            wanted = (*single[:axis], checked.batch_size, *single[axis:])
        if there != wanted:
            problems.append(_shape(path, leaf, axis, decider, there, single, wanted))
    problems += [
        problem(
            "structure",
            code(path, "value"),
            None,
            there="no such leaf",
            asked=f"the template has {short(leaf)} there",
            fix="give a template of the value's structure",
        )
        for path, leaf in one.items()
    ]
    return problems


def _shape(
    path: Path,
    leaf: Any,
    axis: int | None,
    decider: Decider,
    there: Shape,
    single: Shape,
    wanted: Shape,
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
        code(path, "value"),
        decider,
        there=short(leaf),
        asked=f"{how}: the template {single} asks for {wanted}",
        axis=axis,
        shape=there,
        fix=fix,
    )


def nothing_mapped(root: str, deciders: Sequence[Decider]) -> list[Problem]:
    """A row for each decision by which a value ended without a mapped leaf."""
    return [
        problem(
            "nothing-mapped",
            root,
            decider,
            there=f"{_count(deciders.count(decider))}, shared",
            fix="map a leaf:  spec.x = 0  (is a path misspelt?), or say how many "
            "there are:  axis_size=n",
        )
        for decider in dict.fromkeys(deciders)
    ]
