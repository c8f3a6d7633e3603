"""One call: taken apart, planned, and the key of what it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.tree_util as jtu
from attrs import frozen

from staged_axes._programs.cache import signature
from staged_axes._programs.likeness import likeness
from staged_axes._programs.programs import Parts, flatten
from staged_axes._record.decisions import Decision, Entries, Rule
from staged_axes._run.arguments import Argument
from staged_axes._run.outputs import Auto
from staged_axes._run.plan import Plan
from staged_axes._run.vmap import Mapped
from staged_axes._structure import tree as _tree
from staged_axes._structure.content import Key, Uncomparable, content, reader_of_statics
from staged_axes._words.paths import code
from staged_axes.errors import BatchError, Problem, error

# What JAX raises where Python asks a traced number for its value.
NOT_CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)


@frozen
class Donated:
    """The arguments whose buffers a program may reuse, by name and by number."""

    names: frozenset[str]
    numbers: frozenset[int]

    def flags(self, call: Call, given: Sequence[Argument]) -> list[bool]:
        """For each leaf of a call, is it donated?"""
        count = len(call.args)
        is_donated = [
            argument.name in self.names
            or (n < count and not self.numbers.isdisjoint({n, n - count}))
            for n, argument in enumerate(given)
        ]
        return [
            flag
            for flag, argument in zip(is_donated, given, strict=True)
            for _ in jtu.tree_leaves(argument.value)
        ]


@frozen
class Call:
    """One call, taken apart.

    Attributes:
      args: Positional.
      kwargs: By name.
      leaves: All leaves; BCOO arrays and the like are taken apart.
      treedef: Of `args`, or of `(args, kwargs)` where there are any.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    treedef: Any

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Takes a call apart."""
        return cls(args, kwargs, *flatten((args, kwargs) if kwargs else args))

    def likeness(self) -> Any:
        """What the treedefs of later calls are compared with.

        Raises:
          Uncomparable: Static data that gives no key.
        """
        return likeness(self.treedef, Call.of(self.args, self.kwargs).treedef)


@frozen
class Settled:
    """What a call comes to: its arguments by name, its plan, its parts, its key."""

    given: Sequence[Argument]
    plan: Plan
    parts: Parts
    key: Key


def structure_key(mapped: Mapped, call: Call) -> Key:
    """The key of the static data in a call.

    Raises:
      BindError: A static field holds a tracer, or arguments and axes do not fit.
      BatchError: Static data gives no key.
    """
    try:
        key = tuple(reader_of_statics().treedef(call.treedef))
        hash(key)
    except (Uncomparable, RecursionError) as e:
        fault = e
    else:
        return key
    mapped.plan(call.args, call.kwargs)
    raise no_key(mapped.in_axes.place(call.args, call.kwargs), fault)


def settle(mapped: Mapped, donated: Donated, call: Call, structure: Key) -> Settled:
    """Plans a call, with every check, and puts its key together.

    Raises:
      BindError: Arguments and axes do not fit.
      BatchError: Static data gives no key.
    """
    plan, _ = mapped.plan(call.args, call.kwargs)
    given = mapped.in_axes.place(call.args, call.kwargs)
    parts = Parts.of(
        spread(plan.is_fixed, call.leaves, given), donated.flags(call, given)
    )
    out = mapped.out_says
    try:
        key = (
            structure,
            plan.axes,
            plan.batch_size,
            parts,
            signature(call.leaves, parts.fixed),
            out if isinstance(out, Auto) else says_key(out.entries()),
        )
        hash(key)
    except Uncomparable as e:
        raise no_key(given, e) from None
    return Settled(given, plan, parts, key)


def spread(
    flags: Sequence[bool], leaves: Sequence[Any], given: Sequence[Argument]
) -> Sequence[bool]:
    """Flags of planned leaves as flags of all leaves: BCOO is one leaf to a plan."""
    if len(flags) == len(leaves):
        return flags
    planned, _ = _tree.flatten([argument.value for argument in given])
    return [
        flag for x, flag in zip(planned, flags, strict=True) for _ in jtu.tree_leaves(x)
    ]


def says_key(entries: Entries) -> Key:
    """What a record says, without the lines that said it."""
    stages: dict[Any, int] = {}
    both: tuple[Decision | Rule, ...] = (*entries.decisions, *entries.rules)
    said = sorted(both, key=lambda d: d.order)
    return content(
        (
            [
                (
                    type(d),
                    getattr(d, "path", None),
                    getattr(d, "pattern", None),
                    getattr(d, "under", None),
                    d.payload,
                    d.optional,
                    stages.setdefault(d.stage, len(stages)),
                )
                for d in said
            ],
            [(d.path, d.payload) for d in entries.defaults],
        )
    )[0]


def no_key(given: Sequence[Argument], cause: Exception) -> BatchError:
    """The error for static data that cannot be compared, naming each such field."""
    problems = [
        Problem(
            kind=fault.kind,
            path=path,
            there=f"{type(x).__name__} {fault.why}",
            fix="make it a leaf, give its class __hash__ and __eq__, or leave "
            f"{path} out",
        )
        for path, x in _static_places(given)
        if (fault := _fault(x, cause)) is not None
    ]
    count = len(problems) or 1
    return error(
        BatchError,
        f"a program is found by the static data, and {count} "
        f"{'field' if count == 1 else 'fields'} cannot be compared.",
        *(problems or [Problem(kind="static-data", path="value", there=str(cause))]),
    )


def _static_places(given: Sequence[Argument]) -> list[tuple[str, Any]]:
    """Every static field, and every leaf that is no array, by name."""
    places = []
    for argument in given:
        for path, node, below in _tree.nodes(argument.value):
            for name, x in _tree.statics(node, below).items():
                dot = "" if name.startswith("(") else "."
                places.append((code(path, argument.name) + dot + name, x))
        leaves, _ = _tree.flatten(argument.value)
        for path, leaf in zip(_tree.paths(argument.value), leaves, strict=True):
            places.append((code(path, argument.name), leaf))
    return places


def _fault(x: Any, cause: Exception) -> Uncomparable | None:
    """Why this object gives no key, or is the one that could not be compared."""
    if isinstance(cause, Uncomparable) and x is cause.x:
        return cause
    if isinstance(x, jax.core.Tracer):
        return None  # a leaf that is traced
    try:
        content(x)
    except Uncomparable as fault:
        return fault
    return None


def explain_numbers(fault: Exception, plan: Plan, given: Sequence[Argument]) -> None:
    """Adds to an error of JAX which numbers are traced, and how to keep them."""
    numbers = [
        code(path, argument.name)
        for argument in given
        for path, leaf in zip(
            _tree.paths(argument.value), _tree.flatten(argument.value)[0], strict=True
        )
        if isinstance(leaf, bool | int | float)
    ]
    if numbers and hasattr(fault, "add_note"):
        fault.add_note(
            f"A Python number is traced: {', '.join(numbers[:3])}. Where the program "
            "needs its value, decide sa.STATIC for its place."
        )
