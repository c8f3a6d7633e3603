"""The headline over many problems, and the error that holds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from staged_axes.errors import BindConflictError, BindError, Problem, error

# One sentence for a value that has one kind of problem: singular, plural.
SENTENCES = {
    "unknown": (
        "1 decision points at something this value does not have.",
        "{n} decisions point at something this value does not have.",
    ),
    "static": (
        "1 decision points at a static field.",
        "{n} decisions point at static fields.",
    ),
    "unmatched": ("1 rule matches no leaf.", "{n} rules match no leaf."),
    "undecided": (
        "nobody decided about 1 leaf.",
        "nobody decided about {n} leaves.",
    ),
    "axis": (
        "1 leaf does not have the axis on which it is mapped.",
        "{n} leaves do not have the axis on which they are mapped.",
    ),
    "not-array": (
        "1 leaf is mapped but is no array.",
        "{n} leaves are mapped but are no arrays.",
    ),
    "size": ("", "the mapped leaves do not agree on the batch size."),
    "shape": (
        "1 leaf does not have the shape that the template asks for.",
        "{n} leaves do not have the shape that the template asks for.",
    ),
    "structure": (
        "value and template differ in 1 leaf.",
        "value and template differ in {n} leaves.",
    ),
    "tracer": (
        "1 static field holds a tracer.",
        "{n} static fields hold tracers.",
    ),
    "conflict": ("", "a place is decided differently by two stages."),
    "payload": (
        "a function gave something that is no axis.",
        "functions gave something that is no axis in {n} places.",
    ),
    "nothing-mapped": (
        "no leaf is mapped, so the batch size is not known.",
        "no leaf is mapped, so the batch size is not known.",
    ),
}


def headline(problems: Sequence[Problem]) -> str:
    """One sentence for all problems."""
    counts = Counter(p.kind for p in problems)
    if len(counts) == 1:
        ((kind, n),) = counts.items()
        one, many = SENTENCES[kind]
        return (one if n == 1 and one else many).format(n=n)
    return (
        f"{len(problems)} things do not fit: "
        + " ".join(
            headline([p for p in problems if p.kind == kind])[:-1] + ";"
            for kind in counts
        ).removesuffix(";")
        + "."
    )


def unfit(problems: Sequence[Problem]) -> BindError:
    """The one error for a record and a value that do not fit."""
    has_conflict = any(p.kind == "conflict" for p in problems)
    cls = BindConflictError if has_conflict else BindError
    return error(cls, headline(problems), *problems)
