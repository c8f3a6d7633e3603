"""The programs of one function: found fast, never stale, few, and found again.

**Finding one.** A call is flattened outside of JAX's own caches, which only ever see
leaves. Its treedef is compared with that of a `Known` structure in a form that equals
the very same static data alone (`likeness`); which one to compare with is a guess, and
a wrong guess costs time only. Where it fails, the content of the static data is the key
(`content`), and only where that is new is the call traced.

**Staying right.** Every step but the first plans the call anew, with every check. What
a plan came to is part of the entry's key; so two wrappers of one function whose records
come to the same axes find the same entries, and a record that changed finds others.

**Keeping.** Nothing here holds the user's function: a program gives it up once it has
been traced, and the registry that lets a fresh wrapper find the programs of its
function holds the function weakly.
"""

from __future__ import annotations

import operator
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax.tree_util as jtu
from attrs import define, field, frozen

from staged_axes._compat import aval_of, trace_settings
from staged_axes._programs.programs import Entry, Program, Refused
from staged_axes._programs.recompiles import Recompiles, alone, difference, explain
from staged_axes._programs.turns import Turns
from staged_axes._structure.content import Key, Uncomparable, content
from staged_axes._words.news import Compiled

# For all that is kept here, and never held while a function of the user's is traced.
# Calls that are known do not take it.
lock = threading.RLock()

_KNOWN_PER_PROGRAM = 4
_NO_CALL = jtu.tree_structure(0)  # the treedef of a call is that of a tuple


@frozen
class CacheInfo:
    """What a batched function has done, and what it keeps.

    Attributes:
      traces: How often the function was traced.
      compiles: How many of the traces led to a program that was not there before.
      structures: Structures that are kept, each with one signature.
      programs: Programs that are kept for them.
      max_programs: How many structures are kept at most.
    """

    traces: int
    compiles: int
    structures: int
    programs: int
    max_programs: int


@define(eq=False)
class Known:
    """A structure that was seen, and where calls of it led.

    Attributes:
      key: By which it is found.
      use: Marks an entry as used.
      structure: What its treedef is compared with.
      writes: The `Record.writes` up to which it is known to hold: where calls led says
        nothing any more once a record has changed.
      only: The one entry, where there is one and no look at the leaves is needed.
      run: Serves a call of this structure, or raises `Refused`.
      fixed: The numbers of the leaves that are kept as they are.
      by_leaves: The one entry for the identities of those leaves; None for several.
      by_signature: The entry for what those leaves hold and the others' signature.
    """

    key: Any
    use: Callable[[Entry], None]
    structure: Any = _NO_CALL
    writes: int = -1
    only: Entry | None = None
    run: Callable[..., Any] = field(init=False)
    fixed: tuple[int, ...] = ()
    by_leaves: dict[Key, tuple[Entry | None, Any]] = field(factory=dict)
    by_signature: dict[Key, Entry] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.run = self._run

    def _run(self, *leaves: Any) -> Any:
        """Serves a call where it takes a look at the leaves to tell which entry."""
        by_leaves, fixed = self.by_leaves, self.fixed
        found = by_leaves.get((fixed, *[id(leaves[i]) for i in fixed]))
        entry = self.entry(leaves) if found is None or found[0] is None else found[0]
        if entry is None:
            raise Refused
        self.use(entry)
        return entry.run(*leaves)

    def entry(self, leaves: Sequence[Any]) -> Entry | None:
        """The entry for the signature of these leaves."""
        try:
            return self.by_signature.get(signature(leaves, self.fixed))
        except (TypeError, Uncomparable):  # other leaves are fixed in this call
            return None

    def add(self, entry: Entry, leaves: Sequence[Any]) -> None:
        """Remembers where these leaves led."""
        fixed = entry.parts.fixed
        if fixed != self.fixed:
            self.fixed, self.by_leaves, self.by_signature = fixed, {}, {}
        self.by_signature[signature(leaves, fixed)] = entry
        kept = [leaves[i] for i in fixed]
        if all(content(x)[1] for x in kept):
            ids = (fixed, *map(id, kept))
            before, _ = self.by_leaves.get(ids, (entry, None))
            self.by_leaves[ids] = (entry if before is entry else None, kept)
        self.settle()

    def settle(self) -> None:
        """Goes straight to the program where there is only one."""
        entries = list(self.by_signature.values())
        self.only = entries[0] if len(entries) == 1 and not self.fixed else None
        self.run = self._run if self.only is None else self.only.run

    def forget(self, entry: Entry) -> bool:
        """Drops an entry. Is none left?"""
        if all(e is not entry for e in self.by_signature.values()):
            return False
        self.by_leaves = {
            ids: found for ids, found in self.by_leaves.items() if found[0] is not entry
        }
        self.by_signature = {
            key: e for key, e in self.by_signature.items() if e is not entry
        }
        self.settle()
        return not self.by_signature

    def empty(self) -> None:
        """Forgets everything: whoever still holds this finds nothing in it."""
        self.key, self.structure = None, _NO_CALL
        self.by_leaves, self.by_signature = {}, {}
        self.settle()


NOTHING = Known(None, lambda _: None)


def signature(leaves: Sequence[Any], fixed: Sequence[int]) -> Key:
    """What the fixed leaves hold, the others' types as JAX sees them, settings."""
    kept = set(fixed)
    return (
        tuple(content(leaves[i])[0] for i in fixed),
        tuple(aval_of(x) for i, x in enumerate(leaves) if i not in kept),
        trace_settings(),
    )


class Programs:
    """The programs of one function, for one set of options.

    Attributes:
      max_programs: How many entries are kept.
      turns: Of threads that want to trace one and the same.
    """

    def __init__(self, max_programs: int) -> None:
        self.max_programs = max_programs
        self.turns = Turns()
        self._known: dict[Key, Known] = {}
        self.clear()

    def clear(self) -> None:
        """Drops all entries, and counts from zero."""
        with lock:
            for known in self._known.values():
                known.empty()
            self._known = {}
            self._entries: dict[Key, Entry] = {}
            self._compiled: weakref.WeakSet[Program] = weakref.WeakSet()
            self._latest: Entry | None = None
            self._clock = 0
            self._traces = 0
            self._compiles = 0
            self._has_warned = False

    def known(self, key: Key) -> Known | None:
        """The structure with this key."""
        return self._known.get(key)

    def find(self, key: Key) -> Entry | None:
        """The entry with this key."""
        return self._entries.get(key)

    def use(self, entry: Entry) -> None:
        """Marks an entry as used, and the one before it, which was used until now.

        Calls that go straight to their program mark nothing: they cost too little.
        """
        self._clock += 2
        if self._latest is not None:
            self._latest.used = self._clock - 1
        self._latest = entry
        entry.used = self._clock

    def remember(
        self, key: Key, structure: Any, leaves: Sequence[Any], entry: Entry
    ) -> Known:
        """Lets calls like this one find the entry."""
        known = self._known.pop(key, None) or Known(key, self.use)
        self._known[key] = known
        known.structure = structure
        known.add(entry, leaves)
        while len(self._known) > _KNOWN_PER_PROGRAM * self.max_programs:
            self._known.pop(next(iter(self._known))).empty()
        return known

    def same(self, own: Program) -> Program:
        """The program that was compiled for the same computation, else `own`."""
        self._traces += 1
        for other in list(self._compiled):
            if own.key is not None and other.key == own.key:
                own.key = None  # it can be as large as the computation
                return other
        self._compile(own)
        return own

    def part(self, entry: Entry) -> bool:
        """Lets an entry use its own program instead of a shared one; was it shared?"""
        if entry.program is entry.own:
            return False
        self._compile(entry.own)
        entry.share(entry.own)
        for known in self._known.values():
            known.settle()
        return True

    def _compile(self, own: Program) -> None:
        """Takes in a program that JAX will compile when it is called."""
        self._compiles += 1
        self._compiled.add(own)

    def add(self, entry: Entry) -> None:
        """Keeps a new entry, in place of the one that was not used for longest."""
        self._drop(self._entries.get(entry.key))
        self._entries[entry.key] = entry
        self.use(entry)
        while len(self._entries) > self.max_programs:
            self._drop(min(self._entries.values(), key=lambda e: e.used))

    def _drop(self, entry: Entry | None) -> None:
        """Forgets an entry."""
        if entry is None:
            return
        del self._entries[entry.key]
        if self._latest is entry:
            self._latest = None
        for key, known in list(self._known.items()):
            if known.forget(entry):
                del self._known[key]
                known.empty()

    def too_many(self, entry: Entry, limit: int | None) -> tuple[str, int] | None:
        """The field that alone made `limit` programs, said once."""
        if limit is None or self._has_warned or entry.program is not entry.own:
            return None
        path, count = alone(
            entry.fields,
            [
                (e.fields, id(e.program))
                for e in self._entries.values()
                if e.program is not entry.program
            ],
        )
        self._has_warned = count >= limit
        return (path, count) if self._has_warned else None

    def news(self, entry: Entry, name: str, seconds: float) -> Compiled:
        """What to tell of a new program."""
        with lock:
            others = [
                e for e in self._entries.values() if e.program is not entry.program
            ]
        return Compiled(
            function=name,
            programs=1 + len({id(e.program) for e in others}),
            seconds=seconds,
            why=difference(entry.fields, [e.fields for e in others]) if others else "",
        )

    def info(self) -> CacheInfo:
        """Counts, and what is kept."""
        with lock:
            return CacheInfo(
                traces=self._traces,
                compiles=self._compiles,
                structures=len(self._entries),
                programs=len({id(e.program) for e in self._entries.values()}),
                max_programs=self.max_programs,
            )

    def explain(self, name: str) -> Recompiles:
        """What made the kept entries differ."""
        with lock:
            return explain(
                name, [(e.fields, id(e.program)) for e in self._entries.values()]
            )


# Found again -------------------------------------------------------------------------

_Registered = tuple[tuple[Any, ...], dict[Key, Programs]]
_registry: dict[tuple[int, ...], _Registered] = {}


def programs_of(fn: Callable[..., Any], options: Any, max_programs: int) -> Programs:
    """The programs of a function for these options: the same ones for each wrapper.

    A bound method is one function for as long as its object and the function behind it
    live. What cannot be referred to weakly has new programs for each wrapper.
    """
    try:
        key, _ = content((options, max_programs))
    except Uncomparable:
        return Programs(max_programs)
    parts = (fn.__self__, fn.__func__) if isinstance(fn, types.MethodType) else (fn,)
    ids = tuple(map(id, parts))
    with lock:
        found = _registry.get(ids)
        if found is None or not all(
            map(operator.is_, (ref() for ref in found[0]), parts)
        ):
            try:
                refs = tuple(
                    weakref.ref(x, lambda _: _registry.pop(ids, None)) for x in parts
                )
            except TypeError:
                return Programs(max_programs)
            found = _registry[ids] = refs, {}
        return found[1].setdefault(key, Programs(max_programs))
