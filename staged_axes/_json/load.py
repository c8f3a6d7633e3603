"""A record from its text, or all that is wrong in the text, by line and column."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from attrs import define, evolve, field

from staged_axes._json.dump import VERSION
from staged_axes._json.filters import read_filter
from staged_axes._json.text import Located, Reader
from staged_axes._record.decisions import (
    UNDECIDED,
    Decision,
    Form,
    Mounted,
    Rule,
    Stage,
)
from staged_axes._record.placeholders import Places, walk
from staged_axes._record.record import Record, orders, owners
from staged_axes._words import provenance as _provenance
from staged_axes._words.display import short
from staged_axes._words.named import named
from staged_axes._words.paths import Path, code, nearest, parse
from staged_axes._words.provenance import Source
from staged_axes.errors import Problem, RecordError, error

_SOURCE = {"file": str, "line": int}
_RECORD = {
    "id": int,
    "label": str,
    "default": object,
    "decisions": list,
    "rules": list,
    **_SOURCE,
}
_ENTRY = {
    "stage": str,
    "override": bool,
    "optional": bool,
    "by": int,
    "order": int,
    **_SOURCE,
}
_DECISION = {"place": str, **_ENTRY}
_PATTERNS = {"glob": str, "regex": str, "function": str, "filter": object}
_RULE = {**_PATTERNS, "flags": list, "under": str, **_ENTRY}

Members = Mapping[str, Located]


def load(text: str, form: Form) -> tuple[Record, Any]:
    """The record that a text holds, and its class or None.

    The modules that the text names are imported.

    Raises:
      RecordError: The text is no record; every reason with its line and column.
    """
    if not isinstance(text, str):
        raise error(
            RecordError,
            f"a record is read from a string, not from a value of type {short(text)}.",
            Problem(kind="json", path="from_json(...)", there=short(text)),
            fixes=["AxesBuilder.from_json(pathlib.Path(file).read_text())"],
        )
    reader = Reader(text, f"record with an {form.word} for each place")
    loaded = _Loader(form, reader).document(reader.read(), _provenance.caller())
    if reader.problems:
        raise reader.error()
    return loaded


@define
class _Loader:
    """Makes records of located JSON; what is wrong goes to the reader.

    A part that is wrong is left out, or stands as something harmless: nothing of it is
    seen, because the reader then raises in the end.
    """

    form: Form
    reader: Reader
    owners: defaultdict[int, int] = field(
        factory=lambda: defaultdict(lambda: next(owners))
    )
    ids: set[int] = field(factory=set)
    records: dict[int, Record] = field(factory=dict)
    entries: list[tuple[Record, Decision | Rule]] = field(factory=list)
    order: int = -1

    def document(self, root: Located, source: Source) -> tuple[Record, Any]:
        """The outermost record and its class."""
        known = {"version": int, "class": str, **_RECORD}
        members = self.reader.members(root, known, ("version", "default"))
        version = members.get("version")
        if version and version.value != VERSION:
            # Another version may mean anything by everything else.
            self.reader.problems.clear()
            fix = f"this release of staged_axes reads version {VERSION}"
            self.reader.fault(version, f"unknown version {version.value}", fix)
            raise self.reader.error()
        cls = members.get("class")
        type_ = self.named(cls, "a class") if cls else None
        record = self.record(members, source, 0, type_)
        self.restore()
        return record, type_

    def record(
        self, members: Members, source: Source, number: int, type_: Any = None
    ) -> Record:
        """One record, and those that are mounted in it."""
        number = _get(members, "id", number)
        if number in self.ids:
            self.reader.fault(members["id"], f"a second builder with the id {number}")
        self.ids.add(number)
        source = _source(members, source)
        record = Record(
            self.form, self.default(members), source, _get(members, "label", "default")
        )
        record.owner = self.owners[number]
        seen: dict[Path, list[tuple[Decision, Located]]] = defaultdict(list)
        root = Places(record, (), type_)
        for node in _get(members, "decisions", []):
            decision = self.decision(node, record, root)
            if decision is None:
                continue
            self.check_others(decision, node, seen[decision.path])
            seen[decision.path].append((decision, node))
            self.entries.append((record, decision))
        for node in _get(members, "rules", []):
            rule = self.rule(node, record)
            if rule is not None:
                self.entries.append((record, rule))
        # Not before it is complete, so that no record can be mounted inside itself.
        self.records[number] = record
        return record

    def restore(self) -> None:
        """Puts all entries into their records, in their order but as the newest."""
        # Once all are known, because a record and one that is mounted in it may have
        # been written to in turn. What was merged from a record into another has the
        # same order in both; within one record no order comes twice.
        times: Counter[tuple[int, int]] = Counter()
        keyed: list[tuple[tuple[int, int], Record, Decision | Rule]] = []
        for record, entry in self.entries:
            at = (record.owner, entry.order)
            keyed.append(((entry.order, times[at]), record, entry))
            times[at] += 1
        fresh = {key: next(orders) for key in sorted({key for key, *_ in keyed})}
        for key, record, entry in keyed:
            record.restore(evolve(entry, order=fresh[key]))

    def default(self, members: Members) -> Any:
        """What holds where nobody decided."""
        node = members.get("default")
        if node is None or node.value == "undecided":
            return UNDECIDED
        if isinstance(node.value, dict) and "builder" in node.value:
            self.reader.fault(node, "a builder cannot be a default")
            return UNDECIDED
        return self.payload(node, "default", Source("", 0))

    def decision(self, node: Located, record: Record, root: Places) -> Decision | None:
        """One decision; None if its place cannot be told."""
        word = self.form.word
        known = {**_DECISION, word: object}
        members = self.reader.members(node, known, ("place", word))
        common = self.common(members, record)
        path = self.path(members.get("place"))
        if path is None or word not in members:
            return None
        try:
            walk(root, path)
        except RecordError as e:
            self.reader.fault(members["place"], _sentence(e))
        payload = self.payload(members[word], code(path), common["source"])
        return Decision(path=path, payload=payload, **common)

    def rule(self, node: Located, record: Record) -> Rule | None:
        """One rule; None if it has no pattern."""
        word = self.form.word
        members = self.reader.members(node, {**_RULE, word: object}, (word,))
        common = self.common(members, record)
        kinds = [name for name in _PATTERNS if name in members]
        if len(kinds) != 1 and isinstance(node.value, dict):
            names = ", ".join(repr(name) for name in _PATTERNS)
            have = "more than one" if kinds else "none"
            self.reader.fault(node, f"{have} of {names}")
        if len(kinds) != 1 or word not in members:
            return None
        return Rule(
            pattern=self.pattern(kinds[0], members),
            payload=self.payload(members[word], "rule", common["source"]),
            under=self.path(members.get("under")) or (),
            **common,
        )

    def common(self, members: Members, record: Record) -> dict[str, Any]:
        """What decisions and rules have in common."""
        self.order = _get(members, "order", self.order + 1)
        by = members.get("by")
        owner = self.owners[by.value] if by else record.owner
        return {
            "stage": Stage(
                _get(members, "stage", None), owner, _get(members, "override", False)
            ),
            "source": _source(members, record.source),
            "order": self.order,
            "optional": _get(members, "optional", False),
        }

    def check_others(
        self, new: Decision, node: Located, others: list[tuple[Decision, Located]]
    ) -> None:
        """Refuses what could not have been written one after the other."""
        for old, there in others:
            line = self.reader.line(there)
            if old.stage == new.stage:
                what = f"the same stage decides {code(old.path)} at line {line}"
            elif old.payload != new.payload and UNDECIDED not in (
                old.payload,
                new.payload,
            ):
                what = f"{code(old.path)} is decided differently at line {line}"
            else:
                continue
            self.reader.fault(node, what, "remove one of the two")

    def path(self, node: Located | None) -> Path | None:
        """A place; None if there is none, or the text is no path."""
        if node is None:
            return None
        try:
            return parse(node.value)
        except RecordError as e:
            self.reader.fault(node, _sentence(e))
            return None

    def payload(self, node: Located, place: str, source: Source) -> Any:
        """What a decision holds; undecided if the text does not tell."""
        value = node.value
        if isinstance(value, dict):
            return self.late_payload(node, source)
        if isinstance(value, str):
            if value in self.form.constants:
                return self.form.constants[value]
            like = nearest(value, self.form.constants, 1)
            fix = f'did you mean "{like[0]}" ?' if like else ""
            self.reader.fault(node, f"no {self.form.word}: the string {value!r}", fix)
            return UNDECIDED
        try:
            return self.form.check(node.plain(), place)
        except RecordError as e:
            self.reader.fault(node, _sentence(e))
            return UNDECIDED

    def late_payload(self, node: Located, source: Source) -> Any:
        """What is written as an object with one member: its kind."""
        kinds = ("builder", *self.form.functions)
        if len(node.value) != 1 or next(iter(node.value)) not in kinds:
            names = ", ".join(repr(name) for name in kinds)
            self.reader.fault(node, f"an object with one key is needed: {names}")
            return UNDECIDED
        ((name, inner),) = node.value.items()
        if name != "builder":
            return self.form.functions[name](self.named(inner, "a function"))
        if isinstance(inner.value, dict):
            members = self.reader.members(inner, _RECORD, ("default",))
            return Mounted(self.record(members, source, min(self.ids) - 1))
        if self.reader.has_type(inner, int) and inner.value in self.records:
            return Mounted(self.records[inner.value])
        self.reader.fault(inner, "no builder that is complete above has this id")
        return UNDECIDED

    def pattern(self, kind_: str, members: Members) -> Any:
        """The pattern of a rule."""
        node = members[kind_]
        if kind_ != "regex" and "flags" in members:
            self.reader.fault(members["flags"], "only a regex has flags")
        if kind_ == "glob":
            return node.value
        if kind_ == "function":
            return self.named(node, "a function")
        if kind_ == "filter":
            return read_filter(node, self.reader, self.named)
        flags = re.RegexFlag(0)
        for flag in _get(members, "flags", []):
            try:
                flags |= re.RegexFlag[flag.value]
            except (KeyError, TypeError):  # TypeError: a list has no hash
                self.reader.fault(flag, f"no flag of a regex: {flag.plain()!r:.40}")
        try:
            return re.compile(node.value, flags)
        except re.error as e:
            self.reader.fault(node, f"no regular expression: {e}")
            return None

    def named(self, node: Located, what: str) -> Any:
        """What a name in the text stands for, if it is what it should be."""
        if not self.reader.has_type(node, str):
            return None
        try:
            found = named(node.value)
        except LookupError as e:
            self.reader.fault(node, str(e))
            return None
        fits = {
            "a class": isinstance(found, type),
            "a function": callable(found),
            "a filter": callable(found) or found is ...,
        }
        if not fits[what]:
            self.reader.fault(node, f"{node.value!r} is not {what}, but {short(found)}")
        return found


def _get(members: Members, name: str, default: Any) -> Any:
    """The value of a member, or what holds without it."""
    return members[name].value if name in members else default


def _source(members: Members, default: Source) -> Source:
    """The line of code that a part of the text names."""
    return Source(
        _get(members, "file", default.file), _get(members, "line", default.line)
    )


def _sentence(e: RecordError) -> str:
    """The first sentence of an error."""
    return str(e).split("\n", 1)[0].rstrip(".")
