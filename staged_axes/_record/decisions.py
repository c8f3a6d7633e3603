"""What was decided, where, by whom: plain data, without JAX.

A decision holds a *payload*, and a `Form` checks it when it is written and prints it.
`AxesBuilder` uses the form whose payload is an axis.
"""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol

from attrs import field, frozen

from staged_axes._words.paths import Path, code
from staged_axes._words.provenance import Source
from staged_axes.errors import ConflictError, Problem, error


class Undecided(enum.Enum):
    """The type of `UNDECIDED`."""

    UNDECIDED = "UNDECIDED"

    def __repr__(self) -> str:
        return "sa.UNDECIDED"


UNDECIDED = Undecided.UNDECIDED
"""Nobody said. Not `None`, which says: decided, shared."""


class Form(Protocol):
    """What the decisions of one kind of builder hold.

    Attributes:
      word: What a payload is called in a record as text.
      constants: The payloads that have a name of their own there.
      functions: The payloads that hold a function in `fn`, by the name of their kind.
    """

    word: str
    constants: Mapping[str, Any]
    functions: Mapping[str, Any]

    def check(self, payload: Any, place: str, target: str = "") -> Any:
        """The payload in its normal form; raises `RecordError` where it is none."""

    def text(self, payload: Any) -> str:
        """The payload in short, as code."""


@frozen
class Stage:
    """A named part of the user's program that decides.

    Stages are told apart by name and by their owner, the record that they write to or
    the pipeline that runs them, so two modules that use one name for a stage are still
    two modules.
    """

    name: str | None
    owner: int
    override: bool = field(default=False, eq=False)


@frozen(kw_only=True)
class Decision:
    """One place and what was decided for it."""

    path: Path
    payload: Any
    stage: Stage
    source: Source
    order: int
    optional: bool = False

    @property
    def place(self) -> str:
        """Where it holds, as code."""
        return code(self.path)

    @property
    def is_mount(self) -> bool:
        """Does another record count there?"""
        return isinstance(self.payload, Mounted)

    def code(self, form: Form, name: str = "spec") -> str:
        """The line that decides, as code."""
        return f"{code(self.path, name)} = {_payload_text(self, form)}"

    def __str__(self) -> str:
        return decided_by(self.stage, self.source)


@frozen(kw_only=True)
class Rule:
    """A pattern over leaves and what was decided for them.

    Attributes:
      pattern: A glob, a compiled regular expression, a predicate, or an nnx filter.
      under: Where the record that holds the rule is mounted; the pattern sees paths
        from there on.
    """

    pattern: Any
    payload: Any
    stage: Stage
    source: Source
    order: int
    optional: bool = False
    under: Path = ()

    @property
    def place(self) -> str:
        """Where it holds, as code."""
        return f"sa.rule({code(self.under)}, {pattern_text(self.pattern)})"

    def code(self, form: Form, name: str = "spec") -> str:
        """The line that decides, as code."""
        pattern, payload = pattern_text(self.pattern), _payload_text(self, form)
        return f"sa.rule({code(self.under, name)}, {pattern}, {payload})"

    def __str__(self) -> str:
        return decided_by(self.stage, self.source)


@frozen
class Change:
    """What came into a record by one write, and what went."""

    came: tuple[Decision | Rule, ...]
    went: tuple[Decision | Rule, ...]


@frozen(kw_only=True)
class Default:
    """What holds under a place where nobody decided."""

    path: Path
    payload: Any
    source: Source
    label: str = "default"

    def __str__(self) -> str:
        return f"{self.label}  {self.source}"


@frozen
class Mounted:
    """The payload of a place at which another record counts."""

    record: Any = field(eq=id)


@frozen
class Entries:
    """All that a record says at one moment, the mounted records included.

    Attributes:
      name: What the record is called in code; empty where the argument tells.
    """

    decisions: tuple[Decision, ...]
    rules: tuple[Rule, ...]
    defaults: tuple[Default, ...]
    conflicts: tuple[Problem, ...] = ()
    name: str = "spec"


class Says(ABC):
    """Whatever says which axes are meant: a record, or a bound one."""

    __slots__ = ()

    @abstractmethod
    def entries(self) -> Entries:
        """What it says now."""


def pattern_text(pattern: Any) -> str:
    """The pattern of a rule in short, as code."""
    if pattern is ...:
        return "..."
    if isinstance(pattern, str | re.Pattern | bool):
        return repr(pattern)
    return str(getattr(pattern, "__qualname__", type(pattern).__name__))


def _payload_text(made: Decision | Rule, form: Form) -> str:
    """What was decided, as code."""
    text = form.text(made.payload)
    return f"sa.optional({text})" if made.optional else text


def decided_by(stage: Stage, source: Source) -> str:
    """Stage and line in one short text."""
    return f"{stage.name}  {source}" if stage.name else str(source)


def conflict(old: Decision | Rule, new: Decision | Rule, form: Form) -> ConflictError:
    """The error for two stages that decide one place differently."""
    later = new.stage.name or "late"
    fix = (
        f"remove one, or let the later win:  with spec.stage({later!r}, override=True):"
    )
    problems = [
        Problem(
            kind="conflict",
            path=d.code(form),
            axis=d.payload if isinstance(d.payload, int) else None,
            stage=d.stage.name,
            file=d.source.file,
            line=d.source.line,
            decided_by=str(d),
            fix=fix,
        )
        for d in (old, new)
    ]
    return error(
        ConflictError,
        f"{new.place} is decided differently by two stages.",
        *problems,
    )
