"""The record of one builder: who wins among its decisions, and what all of it says.

Within a stage, writing to a place is an assignment that replaces what this stage wrote
at and below it. Across stages nothing is replaced (the nearest to a leaf will win when
the record is resolved), and two stages that decide one place differently are a
conflict, unless the later one may override. A slice is a place of its own: it erases
nothing that was written for exact places.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from staged_axes import _provenance, _staging
from staged_axes._decisions import (
    Change,
    Decision,
    Default,
    Entries,
    Form,
    Mounted,
    Rule,
    Stage,
    conflict,
)
from staged_axes._news import Listeners
from staged_axes._paths import Path
from staged_axes._provenance import Source
from staged_axes.errors import ConflictError, Problem

_UNSHARED = {"_lock", "_entries", "listeners"}
_orders = itertools.count()
owners = itertools.count()


class Record:
    """Decisions and rules of one builder, safe to write from several threads.

    Attributes:
      default: The payload of a leaf for which nobody decides.
      form: Checks and prints payloads.
      source: The line that made the record.
      label: What the default is called in messages.
      listeners: Who is told what becomes of the record; a copy has none.
    """

    def __init__(
        self, form: Form, default: Any, source: Source, label: str = "default"
    ) -> None:
        self.form = form
        self.default = default
        self.source = source
        self.label = label
        self.owner = next(owners)
        self._places: dict[Path, dict[Stage, Decision]] = {}
        self._above: Counter[Path] = Counter()
        self._rules: dict[int, Rule] = {}
        self._version = 0
        self._entries: tuple[tuple[int, ...], Entries] | None = None
        self._lock = threading.RLock()
        self.listeners = Listeners()

    # A copy is another record: its stages are its own, so that a decision taken in
    # the copy is never mistaken for one of the original when the two are merged.

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {k: v for k, v in vars(self).items() if k not in _UNSHARED}
            return kept | {"_above": Counter(self._above)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._entries = None
        self._lock = threading.RLock()
        self.listeners = Listeners()
        fresh: defaultdict[int, int] = defaultdict(lambda: next(owners))
        self.owner = fresh[self.owner]
        self._places = {
            path: {
                (new := evolve(stage, owner=fresh[stage.owner])): evolve(d, stage=new)
                for stage, d in here.items()
            }
            for path, here in self._places.items()
        }
        self._rules = {
            order: evolve(r, stage=evolve(r.stage, owner=fresh[r.stage.owner]))
            for order, r in self._rules.items()
        }

    # Stages ---------------------------------------------------------------------

    def open(self, stage: Stage) -> Stage:
        """Labels what is written from here on, in this thread or task."""
        stage = evolve(stage, changes=[])
        _staging.push(self.owner, stage)
        return stage

    def close(self, stage: Stage, *, failed: bool) -> None:
        """Ends the innermost stage of that name; takes it back where it failed."""
        stage = _staging.pop(self.owner, stage)
        outer = self.current_stage()
        if failed:
            self.take_back(stage)
        elif outer.changes is not None:
            outer.changes.extend(stage.changes or ())

    def current_stage(self) -> Stage:
        """The innermost open stage of this record, or the unnamed one."""
        return _staging.innermost(self.owner) or Stage(None, self.owner)

    # Writing --------------------------------------------------------------------

    def decide(
        self,
        path: Path,
        payload: Any,
        *,
        optional: bool = False,
        source: Source | None = None,
    ) -> None:
        """Writes one decision for the place, by the open stage.

        Raises:
          ConflictError: Another stage decided the same place differently.
        """
        by = self.current_stage()
        self.write(
            Decision(
                path=path,
                payload=payload,
                stage=evolve(by, changes=None),
                source=source or _provenance.caller(),
                order=next(_orders),
                optional=optional,
            ),
            by,
        )

    def write(self, new: Decision, by: Stage | None = None) -> None:
        """Writes a ready decision under the rule of who wins.

        Args:
          new: The decision.
          by: The open stage, which can take back all that happens here.
        """
        by = by or new.stage
        with self._lock:
            if not new.stage.override:
                for old in self._places.get(new.path, {}).values():
                    if old.stage != new.stage and old.payload != new.payload:
                        raise conflict(old, new, self.form)
            for path in list(self._at_and_below(new.path)):
                for stage in list(self._places[path]):
                    if stage == new.stage or new.stage.override:
                        self._switch(self._places[path][stage], False, by)
            self._switch(new, True, by)

    def forget(self, path: Path) -> list[Decision]:
        """Takes back what the open stage decided at and below the place.

        Returns:
          The decisions that are gone: none where this stage had decided nothing.
        """
        current = self.current_stage()
        with self._lock:
            gone = [
                decision
                for place in self._at_and_below(path)
                for stage, decision in self._places[place].items()
                if stage == current or current.override
            ]
            for decision in gone:
                self._switch(decision, False, current)
            return gone

    def add_rule(
        self,
        pattern: Any,
        payload: Any,
        *,
        optional: bool = False,
        under: Path = (),
    ) -> None:
        """Writes one rule, by the open stage."""
        by = self.current_stage()
        self.write_rule(
            Rule(
                pattern=pattern,
                payload=payload,
                stage=evolve(by, changes=None),
                source=_provenance.caller(),
                order=next(_orders),
                optional=optional,
                under=under,
            ),
            by,
        )

    def write_rule(self, new: Rule, by: Stage | None = None) -> None:
        """Writes a ready rule; the same pattern in the same stage is replaced."""
        by = by or new.stage
        with self._lock:
            for old in list(self._rules.values()):
                if (old.stage, old.under) == (new.stage, new.under) and (
                    old.pattern is new.pattern or old.pattern == new.pattern
                ):
                    self._switch(old, False, by)
            self._switch(new, True, by)

    def _at_and_below(self, path: Path) -> Iterable[Path]:
        """The recorded places at and below the path."""
        if path in self._above:
            return [p for p in self._places if p[: len(path)] == path]
        return [path] if path in self._places else []

    def _switch(self, entry: Decision | Rule, here: bool, by: Stage) -> None:
        """Puts an entry in or takes it out; the open stage remembers it."""
        if isinstance(entry, Rule):
            if here:
                self._rules[entry.order] = entry
            else:
                del self._rules[entry.order]
        else:
            if here:
                self._places.setdefault(entry.path, {})[entry.stage] = entry
            else:
                del self._places[entry.path][entry.stage]
                if not self._places[entry.path]:
                    del self._places[entry.path]
            for depth in range(len(entry.path)):
                self._above[entry.path[:depth]] += 1 if here else -1
                if not self._above[entry.path[:depth]]:
                    del self._above[entry.path[:depth]]
        self._version += 1
        self._entries = None
        if by.changes is not None:
            by.changes.append(Change(entry, here))

    def take_back(self, stage: Stage) -> None:
        """Takes back, in reverse, what was written while the stage was open.

        Where somebody else has written since, that stays.
        """
        silent = Stage(None, self.owner)
        with self._lock:
            for change in reversed(stage.changes or []):
                now = self._now(change.entry)
                if now is change.entry if change.came else now is None:
                    self._switch(change.entry, not change.came, silent)

    def made(self, stage: Stage) -> tuple[Decision | Rule, ...]:
        """What was written while the stage was open and still counts."""
        with self._lock:
            came = [c.entry for c in stage.changes or [] if c.came]
            return tuple(entry for entry in came if self._now(entry) is entry)

    def _now(self, entry: Decision | Rule) -> Decision | Rule | None:
        """What is there now, in the place of an entry."""
        if isinstance(entry, Rule):
            return self._rules.get(entry.order)
        return self._places.get(entry.path, {}).get(entry.stage)

    # Reading --------------------------------------------------------------------

    def stamp(self) -> tuple[int, ...]:
        """Changes whenever this record or a mounted one does; cheap."""
        with self._lock:
            return (
                self.owner,
                self._version,
                *(n for m in self._mounts() for n in m.payload.record.stamp()),
            )

    def _mounts(self) -> list[Decision]:
        """The decisions at which another record counts."""
        return [
            decision
            for here in self._places.values()
            for decision in here.values()
            if isinstance(decision.payload, Mounted)
        ]

    def own(self) -> Entries:
        """What was written to this very record, in the order of writing."""
        with self._lock:
            decisions = [d for here in self._places.values() for d in here.values()]
            return Entries(
                tuple(sorted(decisions, key=lambda d: d.order)),
                tuple(sorted(self._rules.values(), key=lambda r: r.order)),
                (
                    Default(
                        path=(),
                        payload=self.default,
                        source=self.source,
                        label=self.label,
                    ),
                ),
            )

    def entries(self) -> Entries:
        """All that counts now, mounted records included, in the order of writing."""
        stamp = self.stamp()
        cached = self._entries
        if cached is None or cached[0] != stamp:
            cached = self._entries = stamp, self._gather()
        return cached[1]

    def _gather(self) -> Entries:
        """The entries, worked out anew."""
        own, mounts = self.own(), self._mounts()
        if not mounts:
            return own
        decisions, rules, defaults = (
            list(own.decisions),
            list(own.rules),
            list(own.defaults),
        )
        conflicts: list[Problem] = []
        for mount in mounts:
            inner = mount.payload.record.entries()
            conflicts += inner.conflicts
            decisions += [
                evolve(
                    d, path=mount.path + d.path, optional=d.optional or mount.optional
                )
                for d in inner.decisions
            ]
            rules += [
                evolve(
                    r,
                    under=mount.path + r.under,
                    optional=r.optional or mount.optional,
                )
                for r in inner.rules
            ]
            defaults += [evolve(d, path=mount.path + d.path) for d in inner.defaults]
        both = Record(self.form, self.default, self.source)
        for decision in sorted(decisions, key=lambda d: d.order):
            try:
                both.write(decision)
            except ConflictError as e:
                conflicts += e.problems
        return Entries(
            both.own().decisions,
            tuple(sorted(rules, key=lambda r: r.order)),
            tuple(sorted(defaults, key=lambda d: len(d.path))),
            tuple(conflicts),
        )

    def reaches(self, other: Record) -> bool:
        """Is `other` this record, or mounted somewhere in it?"""
        return other is self or any(
            mount.payload.record.reaches(other) for mount in self._mounts()
        )
