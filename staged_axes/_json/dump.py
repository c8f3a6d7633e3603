"""The record as text: what it holds, who decided it and where.

Functions, classes and nnx filters are written by the names under which they can be
imported. How a payload is written is the business of the record's form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from attrs import define, field

from staged_axes._json.filters import write_filter
from staged_axes._json.text import layout
from staged_axes._record.decisions import (
    UNDECIDED,
    Decision,
    Entries,
    Form,
    Mounted,
    Rule,
)
from staged_axes._record.record import Record
from staged_axes._structure.patterns import is_nnx_filter
from staged_axes._words.display import short
from staged_axes._words.named import name_of
from staged_axes._words.paths import Path, code, parse
from staged_axes._words.provenance import Source
from staged_axes.errors import Problem, RecordError, error

VERSION = 1
"""Of the form of the text; a text of another version is refused."""


def dump(record: Record, cls: Any = None) -> str:
    """The record as text, with the records that are mounted in it.

    Raises:
      RecordError: It holds functions, classes or keys that have no text.
    """
    return _Writer(record.form, dict(_reachable(record))).text(record, cls)


def _reachable(record: Record) -> Iterator[tuple[Record, Entries]]:
    """The record and those mounted in it, with what they hold now."""
    own = record.own()
    yield record, own
    for decision in own.decisions:
        if isinstance(decision.payload, Mounted):
            yield from _reachable(decision.payload.record)


@define
class _Writer:
    """Puts records into plain data, and gathers what cannot be written."""

    form: Form
    held: dict[Record, Entries]
    written: set[Record] = field(factory=set)
    numbers: dict[int, int] = field(factory=dict)
    ranks: dict[int, int] = field(factory=dict)
    problems: list[Problem] = field(factory=list)

    def text(self, record: Record, cls: Any) -> str:
        """The text of a record and its class."""
        if len(self.held) > 1:
            # Who came first matters between a record and one that is mounted in it.
            found = {d.order for own in self.held.values() for d in own.decisions}
            found |= {r.order for own in self.held.values() for r in own.rules}
            self.ranks = {order: i for i, order in enumerate(sorted(found))}
        head: dict[str, Any] = {"version": VERSION}
        if cls is not None:
            cls = getattr(cls, "__origin__", cls)
            head["class"] = self.name(cls, "sa.AxesBuilder(...)", record.source)
        plain = head | self.record(record)
        if self.problems:
            n = len(self.problems)
            raise error(
                RecordError,
                f"{n} {'thing' if n == 1 else 'things'} in the record cannot be "
                "written as text.",
                *self.problems,
            )
        return layout(plain) + "\n"

    def record(self, record: Record) -> dict[str, Any]:
        """One record; mounted ones are inside where they are first seen."""
        self.written.add(record)
        number = self.number(record.owner)
        own = self.held[record]
        plain = {
            "id": number,
            "label": record.label,
            "default": "undecided"
            if record.default is UNDECIDED
            else self.payload(record.default, "default", record.source),
            **_source(record.source),
            "decisions": [self.decision(d, number) for d in own.decisions],
            "rules": [
                self.rule(r, number) for r in sorted(own.rules, key=lambda r: r.order)
            ],
        }
        usual = {"id": 0, "label": "default", "decisions": [], "rules": []}
        return {k: v for k, v in plain.items() if k not in usual or v != usual[k]}

    def number(self, owner: int) -> int:
        """The number of a record in this text; the first one is 0."""
        return self.numbers.setdefault(owner, len(self.numbers))

    def decision(self, decision: Decision, number: int) -> dict[str, Any]:
        """One decision."""
        return {
            "place": self.place(decision.path, decision),
            self.form.word: self.payload(decision.payload, decision.place, decision),
            **self.entry(decision, number),
        }

    def rule(self, rule: Rule, number: int) -> dict[str, Any]:
        """One rule."""
        under = {"under": self.place(rule.under, rule)} if rule.under else {}
        return {
            **self.pattern(rule.pattern, rule),
            **under,
            self.form.word: self.payload(rule.payload, rule.place, rule),
            **self.entry(rule, number),
        }

    def entry(self, entry: Decision | Rule, number: int) -> dict[str, Any]:
        """What decisions and rules have in common; what is usual is left out."""
        stage = entry.stage
        plain = {
            "stage": stage.name,
            "override": stage.override,
            "optional": entry.optional,
            "by": self.number(stage.owner),
            "order": self.ranks.get(entry.order),
        }
        usual = {
            "stage": None,
            "override": False,
            "optional": False,
            "by": number,
            "order": None,
        }
        kept = {key: value for key, value in plain.items() if value != usual[key]}
        return kept | _source(entry.source)

    def payload(self, payload: Any, place: str, by: Any) -> Any:
        """What a decision holds."""
        if isinstance(payload, Mounted):
            inner = payload.record
            if inner in self.written:
                return {"builder": self.number(inner.owner)}
            return {"builder": self.record(inner)}
        for word, constant in self.form.constants.items():
            if payload is constant:
                return word
        for word, cls in self.form.functions.items():
            if isinstance(payload, cls):
                return {word: self.name(payload.fn, place, by)}
        return payload

    def pattern(self, pattern: Any, by: Rule) -> dict[str, Any]:
        """The pattern of a rule, under the name of its kind."""
        if isinstance(pattern, str):
            return {"glob": pattern}
        if isinstance(pattern, re.Pattern):
            usual = re.compile("").flags
            flags = [f.name for f in re.RegexFlag if f & pattern.flags & ~usual]
            return {"regex": pattern.pattern} | ({"flags": flags} if flags else {})
        if is_nnx_filter(pattern):
            plain = write_filter(pattern, lambda x: self.name(x, by.place, by))
            return {"filter": plain}
        return {"function": self.name(pattern, by.place, by)}

    def name(self, x: Any, place: str, by: Any) -> str | None:
        """The name under which something can be imported."""
        name = name_of(x)
        if name is None:
            fix = (
                "define it at the top level of a module (the script itself cannot be "
                "imported), and use it by its name there"
            )
            self.refuse(place, f"{short(x)}, not importable by name", by, fix)
        return name

    def place(self, path: Path, by: Any) -> str:
        """A path as text that can be read again."""
        text = code(path, "").removeprefix(".")
        try:
            if parse(text) == path:
                return text
        except RecordError:
            pass
        fix = "use a string, a number or a tuple of them as the key"
        self.refuse(code(path), "a key that has no text", by, fix)
        return text

    def refuse(self, place: str, there: str, by: Any, fix: str) -> None:
        """Takes down one thing that cannot be written."""
        source = by if isinstance(by, Source) else by.source
        self.problems.append(
            Problem(
                kind="json",
                path=place,
                there=there,
                stage=None if isinstance(by, Source) else by.stage.name,
                file=source.file,
                line=source.line,
                decided_by=str(by),
                fix=fix,
            )
        )


def _source(source: Source) -> dict[str, Any]:
    """A line of code as members."""
    return {"file": source.file, "line": source.line}
