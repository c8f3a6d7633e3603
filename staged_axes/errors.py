"""The error tree, and the one place where the text of a message is put together.

    StagedAxesError
    ├── RecordError (TypeError)       a decision that cannot be written down
    ├── ConflictError (ValueError)    two stages decide one place differently
    ├── BindError (ValueError)        a record and a value do not fit
    │   ├── BindConflictError         ... and a conflict is among the reasons
    │   └── MemberError (IndexError)  a batch does not have the example asked for
    └── BatchError (ValueError)       a mapped function was called, or answered, wrongly

Every error carries its data in `problems`; the text is made from that data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from attrs import frozen

ROWS = 8
CELL = 90
TEXT = 2000


@frozen(kw_only=True)
class Problem:
    """One thing that is wrong, in one place.

    Attributes:
      kind: A short name of the fault: `"unknown"`, `"static"`, `"unmatched"`,
        `"undecided"`, `"axis"`, `"size"`, `"shape"`, `"not-array"`, `"tracer"`,
        `"conflict"`, `"nothing-mapped"`, `"payload"`, `"argument"`, `"output"`...
      path: The place, as code: `value.wheel.drag` or `spec.wheel.drag`.
      there: What is there, in short: `f32[32,4]`, never contents.
      asked: What was asked of it.
      axis: The axis that was asked for, where there is one.
      shape: The shape of the leaf, where there is one.
      stage: The name of the stage that decided, or None.
      file: The file of the line that decided, or None.
      line: The line that decided, or None.
      decided_by: Stage and line in one short text.
      fix: What to type instead.
    """

    kind: str
    path: str
    there: str = ""
    asked: str = ""
    axis: int | None = None
    shape: tuple[int, ...] | None = None
    stage: str | None = None
    file: str | None = None
    line: int | None = None
    decided_by: str = ""
    fix: str = ""


class StagedAxesError(Exception):
    """The root of every error that this package raises on purpose.

    Attributes:
      problems: One `Problem` for each thing that is wrong.
    """

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.problems)


class RecordError(StagedAxesError, TypeError):
    """A decision that cannot be written down: a bad axis, name, path or rule."""


class ConflictError(StagedAxesError, ValueError):
    """Two stages decide one place differently."""


class BindError(StagedAxesError, ValueError):
    """A record and a value do not fit; `problems` has every reason."""


class BindConflictError(BindError, ConflictError):
    """A `BindError` with a conflict among its reasons."""


class MemberError(BindError, IndexError):
    """A batch does not have the example that was asked for."""


class BatchError(StagedAxesError, ValueError):
    """A mapped function was set up, called, or answered in a way that cannot work."""


ErrorType = TypeVar("ErrorType", bound=StagedAxesError)


def clip(text: str, width: int = CELL) -> str:
    """`text` on one line, at most `width` characters long."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 3] + "..."


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows with their cells in line, empty columns left out."""
    cells = [[clip(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width
        ).rstrip()
        for row in cells
    ]


def message(
    headline: str, problems: Sequence[Problem], *, fixes: Sequence[str] = ()
) -> str:
    """The text of an error: one sentence, a row for each place, and the fix.

    Long parts are shortened so that the whole stays below 2,000 characters.
    """
    rows = [(p.path, p.there, p.asked, p.decided_by) for p in problems if p.path]
    lines = columns(rows[:ROWS])
    more = len(rows) - ROWS
    fixes = list(dict.fromkeys(fixes or [p.fix for p in problems if p.fix]))[:3]
    parts = [clip(headline, 400)]
    if lines:
        parts += ["", *(f"  {line[:170]}" for line in lines)]
        parts += [f"  and {more} more"] if more > 0 else []
    for i, fix in enumerate(fixes):
        indented = fix[:300].replace("\n", "\n       ")
        parts += ["", f"  Fix: {indented}"] if i == 0 else [f"       {indented}"]
    return "\n".join(parts)[:TEXT]


def error(
    cls: type[ErrorType],
    headline: str,
    *problems: Problem,
    fixes: Sequence[str] = (),
) -> ErrorType:
    """An error of class `cls` whose text is made from its problems."""
    return cls(message(headline, problems, fixes=fixes), problems)


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
    "alike": ("", "the values are not built alike."),
    "static-differs": (
        "1 static field is not the same in all values.",
        "{n} static fields are not the same in all values.",
    ),
    "shared-differs": (
        "1 shared leaf is not the same in all values.",
        "{n} shared leaves are not the same in all values.",
    ),
    "member": (
        "1 mapped leaf does not have one shape and dtype in all values.",
        "{n} mapped leaves do not have one shape and dtype in all values.",
    ),
    "whole": (
        "1 mapped leaf cannot be taken apart or put together.",
        "{n} mapped leaves cannot be taken apart or put together.",
    ),
    "unsteady": (
        "1 decision is another one for the batch than for one example.",
        "{n} decisions are other ones for the batch than for one example.",
    ),
    "unlike": (
        "template and batch differ in 1 leaf.",
        "template and batch differ in {n} leaves.",
    ),
    "inserted": (
        "1 leaf does not have one axis more than in the template.",
        "{n} leaves do not have one axis more than in the template.",
    ),
    "ambiguous": (
        "the shapes of 1 leaf allow more than one axis.",
        "the shapes of {n} leaves allow more than one axis.",
    ),
    "several": (
        "1 path names several places, and there is one array.",
        "{n} paths name several places, each with one array.",
    ),
    "empty": (
        "1 place is empty, so there is nothing to vary.",
        "{n} places are empty, so there is nothing to vary.",
    ),
    "leaves": (
        "1 place does not have the leaves of what is to vary it.",
        "{n} places do not have the leaves of what is to vary them.",
    ),
    "twice": (
        "1 leaf is varied twice.",
        "{n} leaves are varied twice.",
    ),
    "dtype": (
        "1 array has other numbers than the leaf that it varies.",
        "{n} arrays have other numbers than the leaves that they vary.",
    ),
    "not-varied": (
        "1 leaf is mapped, but was given no array.",
        "{n} leaves are mapped, but were given no array.",
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
