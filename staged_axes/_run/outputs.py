"""Output axes: ints, trees, builders, and `AUTO`, which finds out what varies.

The structure of an output is known only once the function has run, so output axes are
resolved in the middle of the mapping: `jax.vmap` reads `out_axes` after it has traced
the function, and reads the list that was filled on the way.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.tree_util as jtu
from attrs import define, frozen
from jax.custom_batching import custom_vmap

from staged_axes._record.axes import AXES, STATIC
from staged_axes._record.axes_tree import says
from staged_axes._record.decisions import Says
from staged_axes._resolve.fit import traced
from staged_axes._resolve.misses import Decider, problem
from staged_axes._resolve.resolve import resolve
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import is_array, reach, shape_of
from staged_axes._structure.tracers import holds_tracer
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes._words.provenance import Source
from staged_axes.errors import BatchError, BindError, Problem, count, error


class Auto(enum.Enum):
    """The type of `AUTO`."""

    AUTO = "AUTO"

    def __repr__(self) -> str:
        return "sa.AUTO"


AUTO = Auto.AUTO
"""Output axes that are worked out: mapped where an output varies, else shared."""


@frozen
class Output:
    """What a mapped function gave, taken apart.

    Attributes:
      treedef: Of the whole output.
      fixed: The leaves that are no arrays, by number: strings, functions, objects.
      arrays: The numbers of the other leaves.
      axes: The output axis of each of those.
      fresh: Gives `treedef` and `fixed` anew, where they have plain data that can be
        changed in place.
    """

    treedef: Any
    fixed: dict[int, Any]
    arrays: tuple[int, ...]
    axes: tuple[int | None, ...]
    fresh: Callable[[], tuple[Any, dict[int, Any]]] | None = None

    def rebuild(self, arrays: Sequence[Any]) -> Any:
        """The output, from the arrays that came back."""
        treedef, fixed = self.fresh() if self.fresh else (self.treedef, self.fixed)
        if not fixed:
            return treedef.unflatten(arrays)
        leaves = dict(fixed)
        leaves.update(zip(self.arrays, arrays, strict=True))
        return treedef.unflatten([leaves[i] for i in range(len(leaves))])


@define
class Late:
    """A list that `jax.vmap` takes as `out_axes` now and reads later."""

    axes: list[int | None]
    output: Output | None = None


def out_axes_of(out_axes: Any, source: Source) -> Says | Auto:
    """Who says the output axes.

    Raises:
      RecordError: An axis is none.
    """
    if out_axes is AUTO:
        return Auto.AUTO
    return says(out_axes, "out_axes", source)


def take_apart(
    out: Any, out_says: Says | Auto, witness: Any, *, sums: bool = False
) -> tuple[list[Any], Output]:
    """Splits one example's output and settles its axes; runs while JAX traces.

    Args:
      out: What the user's function gave for one example.
      out_says: Who says the axes.
      witness: A value that varies over the batch of this very mapping.
      sums: May a shared output vary, since JAX will add it up?

    Raises:
      BatchError: The output axes do not fit the output.
    """
    try:
        leaves, treedef = _tree.flatten(out, "output")
    except BindError as e:
        raise BatchError(str(e), e.problems) from None
    numbers = tuple(i for i, x in enumerate(leaves) if is_array(x))
    arrays = [leaves[i] for i in numbers]
    fixed = {i: x for i, x in enumerate(leaves) if not is_array(x)}
    leaky = [i for i, x in fixed.items() if holds_tracer(x)]
    leaks = traced(out, treedef, "output")
    if leaky or leaks:
        places = _tree.paths(out)
        raise _bad_output([*(_leak(places[i], leaves[i]) for i in leaky), *leaks])
    if isinstance(out_says, Auto):
        axes = [0 if v else None for v in _varies(arrays, witness)]
        return arrays, Output(treedef, fixed, numbers, tuple(axes))
    resolved = resolve(out_says.entries(), AXES, out, leaves, treedef, "output")
    problems = list(resolved.problems)
    deciders = [resolved.deciders[i] for i in numbers]
    axes, wrong = _settle([resolved.payloads[i] for i in numbers], arrays)
    shared = [
        i
        for i, n in enumerate(numbers)
        if resolved.payloads[n] in (None, STATIC) and not sums
    ]
    varies = _varies([arrays[i] for i in shared], witness)
    odd = [i for i, v in zip(shared, varies, strict=True) if v]
    if problems or wrong or odd:
        places = _tree.paths(out)
        problems += [
            _bad_axis(code(places[numbers[i]], "output"), arrays[i], axis, deciders[i])
            for i, axis in wrong
        ]
        problems += [
            problem(
                "output",
                code(places[numbers[i]], "output"),
                deciders[i],
                there=f"{short(arrays[i])} for each example",
                asked="shared, but it varies over the batch",
                fix="map it: out_axes=0, or let out_axes=sa.AUTO find out",
            )
            for i in odd
        ]
        raise _bad_output(problems)
    return arrays, Output(treedef, fixed, numbers, tuple(axes))


def _settle(
    payloads: Sequence[Any], arrays: Sequence[Any]
) -> tuple[list[int | None], list[tuple[int, int]]]:
    """Axes counted from the front of the batched output, and those out of range."""
    axes: list[int | None] = []
    wrong: list[tuple[int, int]] = []
    for i, (axis, x) in enumerate(zip(payloads, arrays, strict=True)):
        ndim = len(shape_of(x) or ()) + 1
        last = reach(x)
        if not isinstance(axis, int):
            axes.append(None)
        elif -ndim <= axis < ndim and (last is None or axis % ndim <= last):
            axes.append(axis % ndim)
        else:
            axes.append(0)
            wrong.append((i, axis))
    return axes, wrong


def _bad_axis(path: str, x: Any, axis: int, decider: Decider) -> Problem:
    """The problem of an output axis that is out of range."""
    shape, last = shape_of(x), reach(x)
    ndim = len(shape or ()) + 1
    asked = f"but with the batch it has {count(ndim, 'axis', 'axes')}"
    fix = f"take an axis from {-ndim} to {ndim - 1}, of the output with the batch"
    if last is not None:
        asked = f"but the batch axes of a sparse array come first: n_batch={last}"
        fix = f"take an axis from 0 to {last}"
    return problem(
        "output",
        path,
        decider,
        there=f"{short(x)} for each example",
        asked=f"axis {axis}, {asked}",
        axis=axis,
        shape=shape,
        fix=fix,
    )


def _leak(path: Path, x: Any) -> Problem:
    """The problem of an object that carries a tracer out of its transformation."""
    return problem(
        "output",
        code(path, "output"),
        None,
        there=short(x),
        asked="JAX does not look into it, and it holds a tracer",
        fix="return the arrays themselves, or register its class as a pytree",
    )


def _bad_output(problems: list[Problem]) -> BatchError:
    """The error for output axes that do not fit the output."""
    places = count(len(problems), "place")
    return error(
        BatchError, f"the output axes do not fit the output, in {places}.", *problems
    )


def _varies(arrays: Sequence[Any], witness: Any) -> list[bool]:
    """Which of the arrays vary over the batch of the mapping that runs now.

    The rule of a `custom_vmap` is told, for each leaf, whether it is batched. The
    witness is batched in this mapping and in no inner one, so that the rule that runs
    first is that of this mapping, not of one around it.

    Source:
      https://docs.jax.dev/en/latest/_autosummary/jax.custom_batching.custom_vmap.html
    """
    traced = [
        (i, part)
        for i, x in enumerate(arrays)
        for part in jtu.tree_leaves(x)
        if isinstance(part, jax.core.Tracer)
    ]
    seen = [False] * len(arrays)

    @custom_vmap
    def look(witness: Any, _: Any) -> Any:
        return witness

    @look.def_vmap
    def _rule(_: int, in_batched: Any, witness: Any, __: Any) -> Any:
        for (i, _part), varies in zip(traced, in_batched[1], strict=True):
            seen[i] |= varies
        return witness, in_batched[0]

    if traced:
        look(witness, [part for _, part in traced])
    return seen
