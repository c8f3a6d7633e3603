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
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from attrs import evolve, frozen

from staged_axes import _provenance
from staged_axes._decisions import (
    Decision,
    Default,
    Entries,
    Form,
    Rule,
    Stage,
    conflict,
)
from staged_axes._paths import Path
from staged_axes._provenance import Source
from staged_axes._standing import Standing

_KEPT = ("form", "default", "source", "label", "owner")
orders = itertools.count()
owners = itertools.count()


@frozen(eq=False)
class _Run:
    """One run through the body of a stage of a record."""

    owner: int
    stage: Stage


@frozen
class _Change:
    """One thing that was written, and the runs inside which it was."""

    runs: tuple[_Run, ...]
    apply: Callable[[Standing], object]


_active: ContextVar[tuple[_Run, ...]] = ContextVar("staged_axes_active", default=())


class Record:
    """Decisions and rules of one builder, safe to write from several threads.

    While a stage is open, all changes are kept: where its body raises, what stands is
    worked out again from the others, as though this run had never been.

    Attributes:
      form: Checks and prints payloads.
      default: The payload of a leaf for which nobody decides.
      source: The line that made the record.
      label: What the default is called in messages.
      owner: Tells the stages of this record from those of others.
    """

    def __init__(
        self, form: Form, default: Any, source: Source, label: str = "default"
    ) -> None:
        self.form = form
        self.default = default
        self.source = source
        self.label = label
        self.owner = next(owners)
        self._begin(Standing())

    def _begin(self, standing: Standing) -> None:
        """Starts with what stands, and no stage open."""
        self._standing = standing
        self._before = standing
        self._changes: list[_Change] = []
        self._open = 0
        self._version = 0
        self._mounts: list[Decision] | None = None
        self._entries: tuple[tuple[int, ...], Entries] | None = None
        self._lock = threading.RLock()

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

    def stage(self, name: str, *, override: bool = False) -> StageBlock:
        """Labels what is written inside; where the body raises, takes it back."""
        return StageBlock(self, Stage(name, self.owner, override))

    def current_stage(self) -> Stage:
        """The innermost open stage of this record, or the unnamed one."""
        for run in reversed(_active.get()):
            if run.owner == self.owner:
                return run.stage
        return Stage(None, self.owner)

    def open(self, stage: Stage) -> None:
        """Opens a stage for the thread that asks."""
        with self._lock:
            if not self._open:
                self._before = self._standing.copy()
            self._open += 1
        _active.set((*_active.get(), _Run(self.owner, stage)))

    def close(self, stage: Stage, *, failed: bool) -> None:
        """Closes a stage; takes back what was written in it if it failed."""
        runs = _active.get()
        this = next(
            run
            for run in reversed(runs)
            if (run.owner, run.stage) == (self.owner, stage)
        )
        _active.set(tuple(run for run in runs if run is not this))
        with self._lock:
            if failed:
                self._changes = [c for c in self._changes if this not in c.runs]
                self._standing = self._before.copy()
                for change in self._changes:
                    change.apply(self._standing)
                self._has_changed()
            self._open -= 1
            if not self._open:
                self._changes = []

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
            self._change(partial(Standing.write, new=new))

    def forget(self, path: Path) -> list[Decision]:
        """Takes back what the open stage decided at and below the place.

        Returns:
          The decisions that are gone: none where this stage had decided nothing.
        """
        gone: list[Decision] = self._change(
            partial(Standing.forget, path=path, by=self.current_stage())
        )
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
        self._change(partial(Standing.write_rule, new=new))

    def restore(self, entry: Decision | Rule) -> None:
        """Puts back an entry as it was: it replaces nothing and is no conflict."""
        self._change(partial(Standing.restore, entry=entry))

    def _change(self, apply: Callable[[Standing], Any]) -> Any:
        """Makes one change; keeps it while a stage is open."""
        with self._lock:
            result = apply(self._standing)
            if self._open:
                self._changes.append(_Change(_active.get(), apply))
            self._has_changed()
            return result

    def _has_changed(self) -> None:
        """Lets what was worked out from the old state be worked out again."""
        self._version += 1
        self._mounts = None

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
                self._standing.decisions(), self._standing.rules(), (default,)
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
        for decision in _in_order(d for d in decisions if not d.is_mount):
            old = both.rival(decision)
            if old is None:
                both.write(decision)
            else:
                conflicts += conflict(old, decision, self.form).problems
        return Entries(
            _in_order([*(d for d in decisions if d.is_mount), *both.decisions()]),
            _in_order(rules),
            tuple(sorted(defaults, key=lambda d: len(d.path))),
            tuple(conflicts),
        )

    def reaches(self, other: Record) -> bool:
        """Is `other` this record, or mounted somewhere in it?"""
        return other is self or any(
            mount.payload.record.reaches(other) for mount in self.mounts()
        )


Written = TypeVar("Written", Decision, Rule)


def _in_order(written: Iterable[Written]) -> tuple[Written, ...]:
    """The same in the order of writing."""
    return tuple(sorted(written, key=lambda x: x.order))


@frozen
class StageBlock(ContextDecorator):
    """The block of a stage: for `with`, or a decorator; as often as one likes."""

    _record: Record
    _stage: Stage

    def __enter__(self) -> None:
        self._record.open(self._stage)

    def __exit__(self, kind: object, *_: object) -> None:
        self._record.close(self._stage, failed=kind is not None)
