"""The arguments of one call -> one checked axis for each of their leaves."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from staged_axes._record.axes import AXES, STATIC
from staged_axes._resolve import validate as _validate
from staged_axes._resolve.fit import traced
from staged_axes._resolve.misses import Decider
from staged_axes._resolve.resolve import resolve
from staged_axes._resolve.template import against_template
from staged_axes._run.arguments import Argument
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import kinds
from staged_axes._words.paths import Path
from staged_axes.errors import Problem, unfit


@frozen(kw_only=True)
class Plan:
    """What one call comes to, before anything is mapped.

    Attributes:
      treedef: Of `(args, kwargs)`.
      axes: One axis for each leaf, counted from the front; None for a shared leaf.
      is_fixed: Must the leaf stay the Python object it is? True for `STATIC` places,
        and for shared leaves that are no arrays.
      batch_size: How many examples there are.
      is_general: Do all calls with this structure, and with leaves of these types, come
        to the same? Not where the user's functions were asked about the values.
    """

    treedef: Any
    axes: tuple[int | None, ...]
    is_fixed: tuple[bool, ...]
    batch_size: int
    is_general: bool


def plan(
    arguments: Sequence[Argument],
    leaves: list[Any],
    treedef: Any,
    axis_size: int | None,
    likes: Sequence[Any],
) -> Plan:
    """Settles the axis of each leaf of some arguments.

    Raises:
      BindError: Arguments and axes do not fit; with every reason.
    """
    payloads: list[Any] = []
    deciders: list[Decider] = []
    problems: list[Problem] = []
    owners: list[tuple[int, int]] = []
    names: list[str] = []
    is_general = True
    for n, (argument, part) in enumerate(
        zip(arguments, _argument_treedefs(treedef), strict=True)
    ):
        start = len(payloads)
        entries = argument.says.entries()
        names.append(entries.name or argument.place)
        resolved = resolve(
            evolve(entries, name=names[n]),
            AXES,
            argument.value,
            leaves[start : start + part.num_leaves],
            part,
            argument.name,
        )
        is_general &= resolved.is_general
        payloads += resolved.payloads
        deciders += resolved.deciders
        problems += resolved.problems
        owners += [(n, i) for i in range(part.num_leaves)]
        problems += traced(argument.value, part, argument.name)

    @functools.cache
    def paths(n: int) -> list[Path]:
        return _tree.paths(arguments[n].value)

    def place(i: int) -> _validate.Place:
        n, k = owners[i]
        return _validate.Place(arguments[n].name, paths(n)[k], names[n])

    there = kinds(leaves)
    checked = _validate.check(there, payloads, deciders, place, axis_size=axis_size)
    problems += checked.problems
    if not problems and checked.batch_size is None:
        roots = [arguments[n].name for n, _ in owners]
        problems += _validate.nothing_mapped(roots, deciders)
    if checked.batch_size is not None:
        start = 0
        for argument, part, like in zip(
            arguments, _argument_treedefs(treedef), likes, strict=True
        ):
            own = slice(start, start := start + part.num_leaves)
            if like is not None:
                problems += against_template(
                    checked.axes[own],
                    checked.batch_size,
                    deciders[own],
                    _tree.leaves_by_path(argument.value, argument.name),
                    like,
                    argument.name,
                    problems,
                )
    if problems or checked.batch_size is None:
        raise unfit(problems)
    return Plan(
        treedef=treedef,
        axes=checked.axes,
        is_fixed=tuple(
            payload is STATIC or shape is None
            for payload, shape in zip(payloads, there.shapes, strict=True)
        ),
        batch_size=checked.batch_size,
        is_general=is_general,
    )


def _argument_treedefs(treedef: Any) -> list[Any]:
    """The treedefs of the arguments, from that of `(args, kwargs)`."""
    args, kwargs = treedef.children()
    return [*args.children(), *kwargs.children()]
