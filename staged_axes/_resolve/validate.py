"""Axes against the shapes that are there: range, one size, something mapped.

Everything that is wrong is gathered; nothing is raised here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen

from staged_axes._record.axes import AXES, PerLeaf
from staged_axes._record.decisions import Default
from staged_axes._resolve.misses import Decider, problem
from staged_axes._structure.leaves import Kinds, Shape
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes.errors import Problem, StagedAxesError, count, error


@frozen
class Place:
    """Where a leaf is: in which value, and what to type to decide for it.

    Attributes:
      root: What the value is called in code.
      path: The way from there to the leaf.
      name: What the record is called in code.
    """

    root: str
    path: Path
    name: str = "spec"

    def __str__(self) -> str:
        return code(self.path, self.root)

    def shared(self, decider: Decider) -> str:
        """What to type to share the leaf."""
        if self.name == "spec" and not self.path:
            return 'sa.record(spec, "", None)'
        if self.name == "spec" or not (self.path and isinstance(decider, Default)):
            return f"{code(self.path, self.name)} = None"
        if isinstance(decider.payload, PerLeaf):
            return f"let {self.name} give None for it"
        default = AXES.text(decider.payload)
        return (
            f"spec = sa.AxesBuilder(default={default}); {code(self.path)} = None; "
            f"{self.name} = spec"
        )


Places: TypeAlias = Callable[[int], Place]


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


def checked_size(axis_size: Any, cls: type[StagedAxesError]) -> int | None:
    """A batch size that the user gives.

    Args:
      axis_size: What was given.
      cls: Of the error.

    Raises:
      StagedAxesError: It is no size.
    """
    if axis_size is None:
        return None
    is_int = isinstance(axis_size, int | np.integer) and not isinstance(axis_size, bool)
    if is_int and axis_size >= 0:
        return int(axis_size)
    raise error(
        cls,
        "axis_size is the number of examples: an int, 0 or more.",
        Problem(
            kind="argument",
            path="axis_size",
            there=f"{axis_size}" if type(axis_size) is int else short(axis_size),
        ),
        fixes=["axis_size=32, or leave it out where a leaf is mapped"],
    )


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
      place: From the number of a leaf to its place; asked only where something is
        wrong.
      axis_size: The batch size, where the user gives it.
    """
    pairs = list(zip(payloads, kinds.shapes, strict=True))
    counts = Counter(pairs)  # the different ones are few, however many the leaves
    front = {pair: _from_front(*pair) for pair in counts if _fits(*pair)}
    size_of: dict[tuple[Any, Shape | None], int] = {
        (asked, shape): shape[axis]
        for (asked, shape), axis in front.items()
        if axis is not None and shape is not None
    }
    problems = [
        _no_axis(kinds.text(i), *pairs[i][::-1], deciders[i], place(i))
        for i in range(len(pairs) if len(front) < len(counts) else 0)
        if pairs[i] not in front
    ]
    sizes: Counter[int] = Counter()
    for pair, size in size_of.items():
        sizes[size] += counts[pair]
    axes = [front.get(pair) for pair in pairs]
    problems += [
        _beyond(kinds.text(i), kinds.shapes[i], axes[i], n, deciders[i], place(i))
        for i, n in kinds.reach.items()
        if (axes[i] or 0) >= n and axes[i] is not None
    ]
    expected = axis_size
    if expected is None and sizes:
        expected = max(sizes, key=sizes.__getitem__)
    if sizes and set(sizes) != {expected}:
        by_leaf = [size_of.get(pair) for pair in pairs]
        is_given = axis_size is not None
        problems += _sizes(kinds, axes, by_leaf, deciders, place, expected, is_given)
    return Checked(tuple(axes), expected, tuple(problems))


def _fits(axis: Any, shape: Shape | None) -> bool:
    """Has an array of this shape the axis, if it needs to have one?"""
    if not isinstance(axis, int):  # None, STATIC, or UNDECIDED, which has its own row
        return True
    return shape is not None and -len(shape) <= axis < len(shape)


def _from_front(axis: Any, shape: Any) -> int | None:
    """The axis counted from the front; None for a shared leaf."""
    return axis % len(shape) if isinstance(axis, int) else None


def _no_axis(
    there: str,
    shape: Shape | None,
    axis: int,
    decider: Decider,
    place: Place,
) -> Problem:
    """The problem of a leaf that does not have the axis."""
    share = f"to share it:  {place.shared(decider)}"
    if shape is None:
        return problem(
            "not-array",
            str(place),
            decider,
            there=there,
            asked=f"axis {axis}, but it is no array",
            axis=axis,
            fix=share,
        )
    n = len(shape)
    to_map = f"take an axis from {-n} to {n - 1}" if n else "give it a batch axis"
    return problem(
        "axis",
        str(place),
        decider,
        there=there,
        asked=f"axis {axis}, but its shape is {shape}",
        axis=axis,
        shape=shape,
        fix=f"{share} ; to map it, {to_map}",
    )


def _beyond(
    there: str,
    shape: Shape | None,
    axis: int | None,
    reach: int,
    decider: Decider,
    place: Place,
) -> Problem:
    """The problem of a sparse array whose axis is not one of its batch axes."""
    return problem(
        "axis",
        str(place),
        decider,
        there=there,
        asked=f"axis {axis}, but n_batch={reach} of its axes can be mapped",
        axis=axis,
        shape=shape,
        fix=f"to share it:  {place.shared(decider)} ; to map it, give it n_batch=1",
    )


def _sizes(
    kinds: Kinds,
    axes: Sequence[int | None],
    sizes: Sequence[int | None],
    deciders: Sequence[Decider],
    place: Places,
    expected: int | None,
    is_given: bool,
) -> list[Problem]:
    """A row for each leaf whose size is not the expected one, and one that has it."""
    wanted = f"{expected} in {count(sizes.count(expected), 'leaf', 'leaves')}"
    if is_given:
        wanted = f"axis_size={expected}"
    odd = [i for i, size in enumerate(sizes) if size not in (None, expected)]
    witness = [] if is_given else [sizes.index(expected)]
    problems = []
    for i in [*witness, *odd]:
        is_odd = sizes[i] != expected
        problems.append(
            problem(
                "axis-size" if is_given else "size",
                str(place(i)),
                deciders[i],
                there=kinds.text(i),
                asked=f"axis {axes[i]} has size {sizes[i]}"
                + (f", but {wanted}" if is_odd else ""),
                axis=axes[i],
                shape=kinds.shapes[i],
                fix=f"is {place(i)} the same for all {expected}? Then  "
                f"{place(i).shared(deciders[i])} ; else give it that size"
                if is_odd
                else "",
            )
        )
    return problems


def nothing_mapped(
    roots: Sequence[str], deciders: Sequence[Decider], *, may_say: bool = True
) -> list[Problem]:
    """A row for each decision by which values ended without a mapped leaf.

    Args:
      roots: What the value of each leaf is called in code.
      deciders: Who decided for each leaf.
      may_say: May the user say how many there are?
    """
    fix = (
        "map something (is a path misspelt?), or say how many there are:  axis_size=n"
        if may_say
        else "map something: is a path misspelt?"
    )
    found = Counter(zip(roots, deciders, strict=True))
    return [
        problem(
            "nothing-mapped",
            root,
            decider,
            there=f"{count(n, 'leaf', 'leaves')}, shared",
            fix=fix,
        )
        for (root, decider), n in found.items()
    ] or [problem("nothing-mapped", "arguments", None, there="no leaf", fix=fix)]
