"""Why there are so many programs: which fields, by name, made them differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from staged_axes._run.arguments import Argument
from staged_axes._run.plan import Plan
from staged_axes._structure import tree as _tree
from staged_axes._structure.content import Uncomparable, content, value_text
from staged_axes._words.display import short
from staged_axes._words.paths import code
from staged_axes.errors import BatchError, Problem, error

_SHOWN = 6


@frozen
class Seen:
    """What one field was in one structure: a hash to compare by, and a short text."""

    hash: int
    text: str


Fields = Mapping[str, Seen]


@frozen
class Field:
    """A field that differed between calls.

    Attributes:
      path: The field, as code: `.params['world'].dt`.
      values: What it was, in short, in the order of first sight.
      programs: How many programs were compiled among the structures in which it
        differed.
    """

    path: str
    values: tuple[str, ...]
    programs: int


@frozen
class Recompiles:
    """What `explain_recompiles` answers; `str()` gives a line for each field.

    Attributes:
      name: The name of the function.
      structures: How many structures were traced and are kept.
      programs: How many programs were compiled for them.
      fields: The fields that differed, those with most programs first.
    """

    name: str
    structures: int
    programs: int
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        lines = [f"{f.path}: {_listed(f.values)}" for f in self.fields]
        notes = [
            f"{_count(f.programs, 'program')}"
            if f.programs > 1
            else "one shared program"
            for f in self.fields
        ]
        width = max(map(len, lines), default=0)
        rows = [
            f"  {line.ljust(width)}  ({note})"
            for line, note in zip(lines, notes, strict=True)
        ]
        title = (
            f"{self.name}: {_count(self.programs, 'program')} for "
            f"{_count(self.structures, 'structure')}"
        )
        return "\n".join([title, *rows])


def fields_of(arguments: Sequence[Argument], plan: Plan, settings: Any) -> Fields:
    """Everything in a call that a program can depend on, by name.

    Args:
      arguments: Those of the call, in flatten order.
      plan: What is done with each leaf.
      settings: The configuration of JAX.
    """
    found = {"jax.config": _seen(settings, "as it was in one call")}
    treated = iter(zip(plan.axes, plan.is_fixed, strict=True))
    for argument in arguments:
        root = "" if len(arguments) == 1 else argument.name
        leaves, _ = _tree.flatten(argument.value)
        for path, leaf in zip(_tree.paths(argument.value), leaves, strict=True):
            found[code(path, root) or argument.name] = _leaf(leaf, *next(treated))
        for path, node, below in _tree.nodes(argument.value):
            for name, x in _tree.statics(node, below).items():
                dot = "" if name.startswith("(") else "."
                found[code(path, root) + dot + name] = _seen(x, value_text(x))
    return found


def _leaf(leaf: Any, axis: int | None, is_fixed: bool) -> Seen:
    """Shape, type and axis of what is traced; the value of what is kept."""
    if is_fixed:
        return _seen(leaf, value_text(leaf))
    text = f"{short(leaf)} {'shared' if axis is None else f'axis {axis}'}"
    return Seen(hash(text), text)


def _seen(x: Any, text: str) -> Seen:
    """The object by the hash of its content."""
    try:
        return Seen(hash(content(x)[0]), text)
    except Uncomparable:
        return Seen(id(x), text)


def explain(name: str, structures: Sequence[tuple[Fields, int]]) -> Recompiles:
    """Compares the structures of one function.

    Args:
      name: That of the function.
      structures: Fields and the number of the program, for each structure.
    """
    every = {path: None for fields, _ in structures for path in fields}
    rows = []
    for path in every:
        values = {fields.get(path, Seen(0, "absent")): None for fields, _ in structures}
        if len(values) > 1:
            programs = _programs_by(path, structures)
            rows.append(Field(path, tuple(v.text for v in values), programs))
    return Recompiles(
        name,
        len(structures),
        len({program for _, program in structures}),
        tuple(sorted(rows, key=lambda row: -row.programs)),
    )


def _programs_by(path: str, structures: Sequence[tuple[Fields, int]]) -> int:
    """How many programs the values of one field are spread over."""
    by_value: dict[Any, set[int]] = {}
    for fields, program in structures:
        by_value.setdefault(fields.get(path), set()).add(program)
    shared = set.intersection(*by_value.values())
    return len(set.union(*by_value.values()) - shared) + bool(shared)


def other_inputs(then: Fields, now: Fields) -> BatchError:
    """The error for a compiled program that is given other inputs."""
    absent = Seen(0, "absent")
    problems = [
        Problem(
            kind="inputs",
            path=path,
            there=f"compiled for {then.get(path, absent).text}",
            asked=f"given {now.get(path, absent).text}",
        )
        for path in {**then, **now}
        if then.get(path) != now.get(path)
    ]
    return error(
        BatchError,
        "this program was compiled for other inputs.",
        *problems,
        fixes=["call the batched function itself, which finds the right program"],
    )


def difference(new: Fields, others: Iterable[Fields]) -> str:
    """The fields in which the likest of the others differs, in short."""

    def differing(old: Fields) -> list[str]:
        return [path for path in {**old, **new} if old.get(path) != new.get(path)]

    absent = Seen(0, "absent")
    likest = min(others, key=lambda old: len(differing(old)))
    return "; ".join(
        f"{path}: {likest.get(path, absent).text} -> {new.get(path, absent).text}"
        for path in differing(likest)[:_SHOWN]
    )


def alone(new: Fields, others: Iterable[tuple[Fields, int]]) -> tuple[str, int]:
    """The field that alone made most programs differ from the new one, and how many."""
    items = frozenset(new.items())
    programs: dict[str, set[int]] = {}
    for fields, program in others:
        differing = items.symmetric_difference(fields.items())
        if len({path for path, _ in differing}) == 1:
            programs.setdefault(next(iter(differing))[0], set()).add(program)
    if not programs:
        return "", 0
    path = max(programs, key=lambda p: len(programs[p]))
    return path, len(programs[path]) + 1


def _listed(values: Sequence[str]) -> str:
    """The values, the first few of many."""
    more = len(values) - _SHOWN
    return ", ".join(values[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _count(n: int, noun: str) -> str:
    """`1 program`, `2 programs`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
