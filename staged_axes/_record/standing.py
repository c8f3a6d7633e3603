"""The decisions and rules that stand in a record: who replaces whom.

Within a stage, writing to a place is an assignment that replaces what this stage wrote
at and below it. Across stages nothing is replaced (the nearest to a leaf will win when
the record is resolved), unless the later stage may override. A slice is a place of its
own: it erases nothing that was written for exact places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from staged_axes._record.decisions import Change, Decision, Rule, Stage
from staged_axes._words.paths import Path


class Standing:
    """What stands now, by place and stage. Not made for several threads at once."""

    def __init__(
        self, decisions: Iterable[Decision] = (), rules: Iterable[Rule] = ()
    ) -> None:
        self._places: dict[Path, dict[Stage, Decision]] = {}
        self._above: Counter[Path] = Counter()
        self._rules = list(rules)
        self._buried: set[int] = set()
        for decision in decisions:
            self._put(decision)

    def decisions(self) -> tuple[Decision, ...]:
        """All decisions, in the order of writing."""
        every = (d for here in self._places.values() for d in here.values())
        return tuple(sorted(every, key=lambda d: d.order))

    def rules(self) -> tuple[Rule, ...]:
        """All rules, in the order of writing."""
        return tuple(sorted(self._rules, key=lambda r: r.order))

    def rival(self, new: Decision) -> Decision | None:
        """Another stage's decision with which a new one is in conflict."""
        rivals = (
            old
            for old in self._places.get(new.path, {}).values()
            if old.stage != new.stage and old.payload != new.payload
        )
        return None if new.stage.override else next(rivals, None)

    def write(self, new: Decision) -> Change:
        """Puts a decision in the place of those that it replaces."""
        gone = self.forget(new.path, new.stage).went
        self._put(new)
        return Change((new,), gone)

    def forget(self, path: Path, by: Stage) -> Change:
        """Removes what a stage may remove at and below a place."""
        gone = [
            decision
            for place in self._at_and_below(path)
            for stage, decision in self._places[place].items()
            if stage == by or by.override
        ]
        for decision in gone:
            self._remove(decision)
        return Change((), tuple(gone))

    def write_rule(self, new: Rule) -> Change:
        """Puts a rule last; one of the same pattern and stage is replaced."""
        gone = tuple(
            old
            for old in self._rules
            if (old.stage, old.under) == (new.stage, new.under)
            and (old.pattern is new.pattern or old.pattern == new.pattern)
        )
        for old in gone:
            self._remove(old)
        self._put(new)
        return Change((new,), gone)

    def restore(self, entry: Decision | Rule) -> Change:
        """Puts back an entry as it was."""
        self._put(entry)
        return Change((entry,), ())

    def revert(self, change: Change) -> Change:
        """Undoes a change, but for what somebody has written in its place since."""
        gone = tuple(entry for entry in change.came if self.has(entry))
        for entry in gone:
            self._remove(entry)
        back = tuple(entry for entry in change.went if self._is_free(entry))
        for entry in back:
            self._put(entry)
        return Change(back, gone)

    def bury(self, changes: Iterable[Change]) -> None:
        """Lets nobody bring back what came with changes and was replaced since."""
        came = (entry for change in changes for entry in change.came)
        self._buried.update(entry.order for entry in came if not self.has(entry))

    def has(self, entry: Decision | Rule) -> bool:
        """Does this very entry stand?"""
        if isinstance(entry, Rule):
            return any(rule is entry for rule in self._rules)
        return self._places.get(entry.path, {}).get(entry.stage) is entry

    def _is_free(self, entry: Decision | Rule) -> bool:
        """May an entry come back: has its stage written nothing else in its place?"""
        if entry.order in self._buried:
            return False
        if isinstance(entry, Rule):
            return True
        return entry.stage not in self._places.get(entry.path, {})

    def of_stage(self, stage: Stage) -> tuple[Decision | Rule, ...]:
        """What a stage has decided."""
        every: Iterable[Decision | Rule] = (*self.decisions(), *self.rules())
        return tuple(entry for entry in every if entry.stage == stage)

    def _at_and_below(self, path: Path) -> list[Path]:
        """The decided places at and below the path."""
        if path in self._above:
            return [p for p in self._places if p[: len(path)] == path]
        return [path] if path in self._places else []

    def _put(self, new: Decision | Rule) -> None:
        """Adds an entry; a decision is counted at the places above its own."""
        if isinstance(new, Rule):
            self._rules.append(new)
            return
        self._places.setdefault(new.path, {})[new.stage] = new
        self._above.update(new.path[:depth] for depth in range(len(new.path)))

    def _remove(self, old: Decision | Rule) -> None:
        """Undoes `_put`."""
        if isinstance(old, Rule):
            self._rules = [rule for rule in self._rules if rule is not old]
            return
        here = self._places[old.path]
        del here[old.stage]
        if not here:
            del self._places[old.path]
        for depth in range(len(old.path)):
            self._above[old.path[:depth]] -= 1
            if not self._above[old.path[:depth]]:
                del self._above[old.path[:depth]]
