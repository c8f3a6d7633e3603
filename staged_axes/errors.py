"""The error tree, and the one place where the text of a message is put together.

    StagedAxesError
    ├── RecordError (TypeError)       a decision that cannot be written down
    │   └── FieldError (AttributeError)   ... as the declared class has no such leaf
    ├── ConflictError (ValueError)    two stages decide one place differently
    ├── BindError (ValueError)        a record and a value do not fit
    │   ├── BindConflictError         ... and a conflict is among the reasons
    │   └── MemberError (IndexError)  a batch does not have the example asked for
    ├── BatchError (ValueError)       a mapped function was called, or answered, wrongly
    └── PipelineError (ValueError)    stages that are none, or do not fit together

Every error carries its data in `problems`; the text is made from that data.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from attrs import frozen

from staged_axes._words.display import Table, cut

TEXT = 2000
HEADLINE = 320
ROWS = 8
WIDTH = 130
FIXES = 3
FIX = 300


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


class FieldError(RecordError, AttributeError):
    """A name that the declared class does not have, or has as static data.

    An `AttributeError` too, so that `hasattr` and `getattr` with a default answer.
    """


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


class PipelineError(StagedAxesError, ValueError):
    """A stage that is none, or stages that do not fit together."""


ErrorType = TypeVar("ErrorType", bound=StagedAxesError)


class RecompileWarning(UserWarning):
    """One field alone has made many programs of one function."""


def clip(text: str, width: int) -> str:
    """`text` on one line, at most `width` characters long."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 3] + "..."


def few(names: Sequence[str], count: int = 6) -> str:
    """The first of some names, and how many more there are.

    Example:
      >>> few(["a", "b", "c", "d"], 2)
      'a, b and 2 more'
    """
    rest = len(names) - count
    return ", ".join(names[:count]) + (f" and {rest} more" if rest > 0 else "")


def with_article(noun: str) -> str:
    """A noun with its article.

    Example:
      >>> with_article("str"), with_article("int"), with_article("f32[3]")
      ('a str', 'an int', 'an f32[3]')
    """
    if noun == "None":
        return noun
    return f"an {noun}" if re.match(r"[AEIOUaeio]|f\d", noun) else f"a {noun}"


def count(n: int, one: str, many: str = "") -> str:
    """A number of things: `1 leaf`, `2 leaves`."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def message(
    headline: str, problems: Sequence[Problem], *, fixes: Sequence[str] = ()
) -> str:
    """The text of an error: one sentence, a row for each place, and the fix.

    Long parts are shortened so that the whole stays below 2,000 characters.
    """
    turns = _by_turns(problems)
    shown = [problems[i] for i in sorted(turns[:ROWS])]
    rows = [(p.path, p.there, p.asked, p.decided_by) for p in shown]
    parts = [clip(headline, HEADLINE)]
    parts += ["", *_lines(rows)] if rows else []
    parts += [f"  and {len(turns) - ROWS} more"] if len(turns) > ROWS else []
    text = "\n".join(parts)
    found = [problems[i].fix for i in turns if problems[i].fix]
    fixes = list(dict.fromkeys(fixes or found))
    for i, fix in enumerate(fixes[:FIXES]):
        lead = "       " if i else "\n  Fix: "
        part = "\n" + lead + fix[:FIX].replace("\n", "\n       ")
        text += part if len(text + part) < TEXT else ""
    return text


def _by_turns(problems: Sequence[Problem]) -> list[int]:
    """The problems by number: the first of each kind, then the second of each, ..."""
    seen: Counter[str] = Counter()
    rank = []
    for problem in problems:
        rank.append(seen[problem.kind])
        seen[problem.kind] += 1
    return sorted(range(len(problems)), key=lambda i: rank[i])


def _lines(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows as text, those one after another with the same cells in line."""
    lines = []
    for filled, group in itertools.groupby(rows, lambda row: [bool(x) for x in row]):
        cells = tuple(
            tuple(cut(cell, WIDTH) for cell in itertools.compress(row, filled))
            for row in group
        )
        table = Table("", ("",) * sum(filled), cells)
        lines += [f"  {line}" for line in table.plain(WIDTH).splitlines()]
    return lines


def error(
    cls: type[ErrorType],
    headline: str,
    *problems: Problem,
    fixes: Sequence[str] = (),
) -> ErrorType:
    """An error of class `cls` whose text is made from its problems."""
    return cls(message(headline, problems, fixes=fixes), problems)


# One sentence for each kind of problem between a record and a value.
SENTENCES = {
    "unknown": (
        "1 decision points at something this value does not have",
        "{n} decisions point at something this value does not have",
    ),
    "static": (
        "1 decision points at a static field",
        "{n} decisions point at static fields",
    ),
    "unmatched": ("1 rule matches no leaf", "{n} rules match no leaf"),
    "undecided": ("nobody decided about 1 leaf", "nobody decided about {n} leaves"),
    "axis": (
        "1 leaf does not have the axis on which it is mapped",
        "{n} leaves do not have the axis on which they are mapped",
    ),
    "not-array": (
        "1 leaf is mapped but is no array",
        "{n} leaves are mapped but are no arrays",
    ),
    "size": (
        "the mapped leaves do not agree on the batch size: 1 differs",
        "the mapped leaves do not agree on the batch size: {n} differ",
    ),
    "axis-size": (
        "1 mapped leaf does not have the size that axis_size gives",
        "{n} mapped leaves do not have the size that axis_size gives",
    ),
    "shape": (
        "1 leaf does not have the shape that the template asks for",
        "{n} leaves do not have the shape that the template asks for",
    ),
    "structure": (
        "value and template differ in 1 leaf",
        "value and template differ in {n} leaves",
    ),
    "tracer": ("1 static field holds a tracer", "{n} static fields hold tracers"),
    "conflict": (
        "1 place is decided differently by two stages",
        "{n} places are decided differently by two stages",
    ),
    "payload": (
        "1 place got something that is no axis from a function",
        "{n} places got something that is no axis from a function",
    ),
    "nothing-mapped": ("no leaf is mapped, so the batch size is not known",) * 2,
    "alike": ("the values are not built alike",) * 2,
    "static-differs": (
        "1 static field is not the same in all values",
        "{n} static fields are not the same in all values",
    ),
    "shared-differs": (
        "1 shared leaf is not the same in all values",
        "{n} shared leaves are not the same in all values",
    ),
    "member": (
        "1 mapped leaf does not have one shape and dtype in all values",
        "{n} mapped leaves do not have one shape and dtype in all values",
    ),
    "whole": (
        "1 mapped leaf cannot be taken apart or put together",
        "{n} mapped leaves cannot be taken apart or put together",
    ),
    "unsteady": (
        "1 decision is another one for the batch than for one example",
        "{n} decisions are other ones for the batch than for one example",
    ),
    "unlike": (
        "template and batch differ in 1 leaf",
        "template and batch differ in {n} leaves",
    ),
    "inserted": (
        "1 leaf does not have one axis more than in the template",
        "{n} leaves do not have one axis more than in the template",
    ),
    "ambiguous": (
        "the shapes of 1 leaf allow more than one axis",
        "the shapes of {n} leaves allow more than one axis",
    ),
    "several": (
        "1 path names several places, and there is one array",
        "{n} paths name several places, each with one array",
    ),
    "empty": (
        "1 place is empty, so there is nothing to vary",
        "{n} places are empty, so there is nothing to vary",
    ),
    "leaves": (
        "1 place does not have the leaves of what is to vary it",
        "{n} places do not have the leaves of what is to vary them",
    ),
    "twice": (
        "1 leaf is varied twice",
        "{n} leaves are varied twice",
    ),
    "dtype": (
        "1 array has other numbers than the leaf that it varies",
        "{n} arrays have other numbers than the leaves that they vary",
    ),
    "not-varied": (
        "1 leaf is mapped, but was given no array",
        "{n} leaves are mapped, but were given no array",
    ),
}


def headline(problems: Sequence[Problem]) -> str:
    """One sentence over all problems: what is wrong, in how many places.

    A conflict has two rows; one row of a wrong size shows a leaf that has the right
    one.
    """
    parts = []
    for kind in dict.fromkeys(p.kind for p in problems):
        n = sum(p.kind == kind for p in problems)
        n = n // 2 if kind == "conflict" else n - 1 if kind == "size" else n
        parts.append(SENTENCES[kind][n != 1].format(n=n))
    return "; ".join(parts) + "."


def unfit(problems: Sequence[Problem]) -> BindError:
    """The one error for a record and a value that do not fit."""
    has_conflict = any(p.kind == "conflict" for p in problems)
    cls = BindConflictError if has_conflict else BindError
    return error(cls, headline(problems), *problems)


def too_many_programs(name: str, path: str, count: int) -> RecompileWarning:
    """The warning for a static field that takes many values."""
    return RecompileWarning(
        f"{name} was compiled {count} times because {path} alone was different. A "
        "value that changes from call to call is better a leaf, which is traced; "
        f"{name}.explain_recompiles() lists the values; warn_after=None turns this off."
    )
