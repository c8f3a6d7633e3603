"""The record of one builder: written by stages and threads, read as one.

What stands is kept by `Standing`. This file adds what time brings: stages that open,
end, or raise and are taken back; several threads; copies; and other records that are
mounted here and go on being written.
"""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, TypeVar

from attrs import evolve, frozen

from staged_axes._record import staging as _staging
from staged_axes._record.decisions import (
    Change,
    Decision,
    Default,
    Entries,
    Form,
    Rule,
    Says,
    Stage,
    conflict,
)
from staged_axes._record.staging import Run
from staged_axes._record.standing import Standing
from staged_axes._words import provenance as _provenance
from staged_axes._words.news import Listeners
from staged_axes._words.paths import Path
from staged_axes._words.provenance import Source

_KEPT = ("form", "default", "source", "label", "name", "owner")
orders = itertools.count()
owners = itertools.count()
_writes = itertools.count(1)


@frozen
class _Write:
    """One write, the runs of stages inside which it was, and what it changed."""

    runs: tuple[Run, ...]
    apply: Callable[[Standing], Change]
    change: Change


class Record(Says):
    """Decisions and rules of one builder, safe to write from several threads.

    While a stage is open, all writes are kept: where its body raises, what stands is
    worked out again from the others, as though this run had never been.

    Attributes:
      form: Checks and prints payloads.
      default: The payload of a leaf for which nobody decides.
      source: The line that made the record.
      label: What the default is called in messages.
      name: What the record is called in code.
      owner: Tells the stages of this record from those of others.
      listeners: Who is told what becomes of the record; a copy has none.
      recent: What was bound last, for `bind` to look at; a copy has none.
      writes: Changes whenever any record does: whoever keeps what records said asks
        again only then.
    """

    writes: ClassVar[int] = 0

    def __init__(
        self,
        form: Form,
        default: Any,
        source: Source,
        label: str = "default",
        name: str = "spec",
    ) -> None:
        self.form = form
        self.default = default
        self.source = source
        self.label = label
        self.name = name
        self.owner = next(owners)
        self._begin(Standing())

    def _begin(self, standing: Standing) -> None:
        """Starts with what stands, and no stage open."""
        self._standing = standing
        self._writes: list[_Write] = []
        self._open: list[Run] = []
        self._version = 0
        self._mounts: list[Decision] | None = None
        self._entries: tuple[tuple[int, ...], Entries] | None = None
        self._lock = threading.RLock()
        self.listeners = Listeners()
        self.recent: tuple[Any, ...] = ()

    # A copy is another record: its stages are its own, so that a decision taken in
    # the copy is never mistaken for one of the original when the two are merged.

    def __getstate__(self) -> dict[str, Any]:
        own = self.own()
        kept = {name: getattr(self, name) for name in _KEPT}
        return kept | {"decisions": own.decisions, "rules": own.rules}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name in _KEPT:
            setattr(self, name, state[name])
        fresh: defaultdict[int, int] = defaultdict(lambda: next(owners))
        self.owner = fresh[self.owner]
        decisions, rules = (
            [evolve(x, stage=evolve(x.stage, owner=fresh[x.stage.owner])) for x in kind]
            for kind in (state["decisions"], state["rules"])
        )
        newest = max((x.order for x in [*decisions, *rules]), default=-1)
        # What another process wrote counts as written before all that comes here.
        while next(orders) <= newest:
            pass
        self._begin(Standing(decisions, rules))

    # Stages ---------------------------------------------------------------------

    def current_stage(self) -> Stage:
        """The innermost open stage of this record, or the unnamed one."""
        run = _staging.innermost(self.owner)
        return run.stage if run else Stage(None, self.owner)

    def open(self, stage: Stage) -> Run:
        """Opens a stage for the thread or task that asks."""
        run = _staging.enter(self.owner, stage)
        with self._lock:
            self._open.append(run)
        return run

    def close(self, stage: Stage, *, failed: bool) -> None:
        """Closes a stage; takes back what was written in it if it failed.

        Raises:
          RecordError: The stage is not open.
        """
        with self._lock:
            run = _staging.leave(stage, self._open)
            self._open.remove(run)
            if failed:
                for write in reversed(self._writes):
                    self._standing.revert(write.change)
                rest = [w for w in self._writes if run not in w.runs]
                self._writes = [evolve(w, change=w.apply(self._standing)) for w in rest]
                self._has_changed()
            else:
                run.changes.extend(w.change for w in self._writes if run in w.runs)
            if not self._open:
                self._writes = []

    def take_back(self, run: Run) -> None:
        """Undoes what was written in a stage that is closed, with what it replaced.

        Where somebody else has written since, that stays; it is no longer kept for
        anybody who would bring it back.
        """
        with self._lock:
            self._standing.bury(run.changes)
            for change in reversed(run.changes):
                self._write(partial(Standing.revert, change=change))

    def forget_stage(self, stage: Stage) -> None:
        """Removes all that a stage decided."""
        with self._lock:
            for entry in self._standing.of_stage(stage):
                self._write(partial(Standing.revert, change=Change((entry,), ())))

    def made(self, run: Run) -> tuple[Decision | Rule, ...]:
        """What was written in a closed stage and still stands."""
        with self._lock:
            came = [entry for change in run.changes for entry in change.came]
            return tuple(entry for entry in came if self._standing.has(entry))

    # Writing --------------------------------------------------------------------

    def decide(
        self,
        path: Path,
        payload: Any,
        *,
        optional: bool = False,
    ) -> None:
        """Writes one decision for the place, by the open stage.

        Raises:
          ConflictError: Another stage decided the same place differently.
        """
        self.write(
            Decision(
                path=path,
                payload=payload,
                stage=self.current_stage(),
                source=_provenance.caller(),
                order=next(orders),
                optional=optional,
            )
        )

    def write(self, new: Decision) -> None:
        """Writes a ready decision.

        Raises:
          ConflictError: Another stage decided the same place differently.
        """
        with self._lock:
            old = self._standing.rival(new)
            if old is not None:
                raise conflict(old, new, self.form)
            self._write(partial(Standing.write, new=new))

    def forget(self, path: Path) -> tuple[Decision | Rule, ...]:
        """Takes back what the open stage decided at and below the place.

        Returns:
          The decisions that are gone: none where this stage had decided nothing.
        """
        change = self._write(
            partial(Standing.forget, path=path, by=self.current_stage())
        )
        return change.went

    def add_rule(
        self,
        pattern: Any,
        payload: Any,
        *,
        optional: bool = False,
        under: Path = (),
    ) -> None:
        """Writes one rule, by the open stage."""
        self.write_rule(
            Rule(
                pattern=pattern,
                payload=payload,
                stage=self.current_stage(),
                source=_provenance.caller(),
                order=next(orders),
                optional=optional,
                under=under,
            )
        )

    def write_rule(self, new: Rule) -> None:
        """Writes a ready rule; the same pattern in the same stage is replaced."""
        self._write(partial(Standing.write_rule, new=new))

    def restore(self, entry: Decision | Rule) -> None:
        """Puts back an entry as it was: it replaces nothing and is no conflict."""
        self._write(partial(Standing.restore, entry=entry))

    def _write(self, apply: Callable[[Standing], Change]) -> Change:
        """Makes one write; keeps it while a stage is open."""
        with self._lock:
            change = apply(self._standing)
            if self._open:
                self._writes.append(_Write(_staging.runs(), apply, change))
            self._has_changed()
            return change

    def _has_changed(self) -> None:
        """Lets what was worked out from the old state be worked out again."""
        self._version += 1
        self._mounts = None
        Record.writes = next(_writes)

    # Reading --------------------------------------------------------------------

    def stamp(self) -> tuple[int, ...]:
        """Changes whenever this record or a mounted one does; cheap."""
        with self._lock:
            own = self.owner, self._version
            mounts = self.mounts()
        return (*own, *(n for m in mounts for n in m.payload.record.stamp()))

    def mounts(self) -> list[Decision]:
        """The decisions at which another record counts."""
        with self._lock:
            if self._mounts is None:
                decisions = self._standing.decisions()
                self._mounts = [d for d in decisions if d.is_mount]
            return self._mounts

    def own(self) -> Entries:
        """What was written to this very record, in the order of writing."""
        default = Default(
            path=(), payload=self.default, source=self.source, label=self.label
        )
        with self._lock:
            return Entries(
                self._standing.decisions(),
                self._standing.rules(),
                (default,),
                name=self.name,
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
        own, mounts = self.own(), self.mounts()
        if not mounts:
            return own
        decisions, rules = [*own.decisions], [*own.rules]
        defaults, conflicts = [*own.defaults], [*own.conflicts]
        # Two stages may mount one record at one place: it counts once.
        for mount in {(m.path, m.payload): m for m in mounts}.values():
            inner, path = mount.payload.record.entries(), mount.path
            conflicts += inner.conflicts
            defaults += [evolve(d, path=path + d.path) for d in inner.defaults]
            decisions += [
                evolve(d, path=path + d.path, optional=d.optional or mount.optional)
                for d in inner.decisions
            ]
            rules += [
                evolve(r, under=path + r.under, optional=r.optional or mount.optional)
                for r in inner.rules
            ]
        # A mount says where a record counts, and nothing against what is in it.
        both = Standing()
        for decision in in_order(d for d in decisions if not d.is_mount):
            old = both.rival(decision)
            if old is None:
                both.write(decision)
            else:
                conflicts += conflict(old, decision, self.form).problems
        return Entries(
            in_order([*(d for d in decisions if d.is_mount), *both.decisions()]),
            in_order(rules),
            tuple(sorted(defaults, key=lambda d: len(d.path))),
            tuple(conflicts),
            self.name,
        )

    def reaches(self, other: Record) -> bool:
        """Is `other` this record, or mounted somewhere in it?"""
        return other is self or any(
            mount.payload.record.reaches(other) for mount in self.mounts()
        )


Written = TypeVar("Written", Decision, Rule)


def in_order(written: Iterable[Written]) -> tuple[Written, ...]:
    """The same in the order of writing."""
    return tuple(sorted(written, key=lambda x: x.order))
