"""The programs of one function: found fast, never stale, few, and found again.

**Finding one.** A call is flattened outside of JAX's own caches, which only ever see a
list of leaves. The objects in its static data, told by identity, lead to a `Known`
structure, and that to an `Entry`: the program of one structure for one signature.
Only where an object is a new one is its content read, and only where that is new too
is the call traced. What can be changed in place is read again at each call.

**Staying right.** Every step but the first plans the call anew, with every check. What
a plan came to is part of the entry's key; so two wrappers of one function whose records
come to the same axes find the same entries, and a record that changed finds others.

**Keeping.** Nothing here holds the user's function: a program gives it up once it has
been traced, and the registry that lets a fresh wrapper find the programs of its
function holds the function weakly.
"""

from __future__ import annotations

import itertools
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.api_util
from attrs import define, field, frozen

from staged_axes._compat import trace_settings
from staged_axes._content import Key, Uncomparable, content
from staged_axes._news import Compiled
from staged_axes._programs import Entry, Program, taker
from staged_axes._recompiles import Recompiles, alone, difference, explain

# One trace at a time, whichever function: a function that is traced may call another,
# so a lock for each could end in a deadlock. Calls that are known never take it.
lock = threading.RLock()

_KNOWN_PER_PROGRAM = 4


@frozen
class CacheInfo:
    """How a batched function was served.

    Attributes:
      hits: Calls that found their program.
      misses: Calls that did not: one trace each.
      programs: Compiled programs that are kept.
      structures: Structures that are kept, each with one signature.
      max_programs: How many structures are kept at most.
    """

    hits: int
    misses: int
    programs: int
    structures: int
    max_programs: int


@define(eq=False)
class Known:
    """A structure that was seen, by the identity of its static data.

    Attributes:
      atoms: The objects, kept so that no other can take their identity.
      watched: Number and content of those that can be changed in place.
      fixed: The numbers of the leaves that are kept as they are.
      quick: What takes those leaves, and the one entry for their identities; None for
        several. They are one object, so that a thread sees both or neither.
      by_signature: The entry for what those leaves hold and the others' signature.
    """

    atoms: list[Any]
    watched: list[tuple[int, Key]] = field(init=False)
    fixed: tuple[int, ...] = ()
    quick: tuple[Callable[[Any], Any], dict[Any, tuple[Entry | None, Any]]] = field(
        init=False
    )
    by_signature: dict[Key, Entry] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        read = [(i, *content(x)) for i, x in enumerate(self.atoms)]
        self.watched = [(i, key) for i, key, is_stable in read if not is_stable]
        self.quick = taker(()), {}

    def is_fresh(self, atoms: list[Any]) -> bool:
        """Do the objects that can change still hold what they held?"""
        return all(content(atoms[i])[0] == key for i, key in self.watched)

    def only(self, leaves: list[Any]) -> Entry | None:
        """The entry for these leaves, where there is only one that it can be."""
        take, entries = self.quick
        found = entries.get(tuple(map(id, take(leaves))))
        return None if found is None else found[0]

    def among(self, leaves: list[Any]) -> Entry | None:
        """The entry for the signature of these leaves."""
        try:
            return self.by_signature.get(signature(leaves, self.fixed))
        except (TypeError, Uncomparable):  # other leaves are fixed in this call
            return None

    def add(self, entry: Entry, leaves: list[Any]) -> None:
        """Remembers where these leaves led."""
        fixed = entry.parts.fixed
        if fixed != self.fixed:
            self.fixed, self.by_signature = fixed, {}
            self.quick = taker(fixed), {}
        self.by_signature[signature(leaves, self.fixed)] = entry
        kept = self.quick[0](leaves)
        if all(content(x)[1] for x in kept):
            entries = self.quick[1]
            before, _ = entries.get(ids := tuple(map(id, kept)), (entry, None))
            entries[ids] = (entry if before is entry else None, kept)

    def forget(self, entry: Entry) -> bool:
        """Drops an entry. Is none left?"""
        take, entries = self.quick
        self.quick = take, {k: v for k, v in entries.items() if v[0] is not entry}
        self.by_signature = {
            k: e for k, e in self.by_signature.items() if e is not entry
        }
        return not self.by_signature


def signature(leaves: Sequence[Any], fixed: Sequence[int]) -> Key:
    """What the fixed leaves hold, the types of the others as JAX sees them, settings."""
    kept = set(fixed)
    return (
        tuple(content(leaves[i])[0] for i in fixed),
        tuple(
            x.aval if isinstance(x, jax.Array) else jax.api_util.shaped_abstractify(x)
            for i, x in enumerate(leaves)
            if i not in kept
        ),
        trace_settings(),
    )


class Programs:
    """The programs of one function, for one set of options.

    Attributes:
      max_programs: How many entries are kept.
    """

    def __init__(self, max_programs: int) -> None:
        self.max_programs = max_programs
        self.clear()

    def clear(self) -> None:
        """Drops all entries, and counts from zero."""
        with lock:
            self._known: dict[Key, Known] = {}
            self._entries: dict[Key, Entry] = {}
            self._compiled: weakref.WeakSet[Program] = weakref.WeakSet()
            self._clock = itertools.count()  # ticks with each call, to tell the oldest
            self._misses = 0
            self._other_ticks = 0
            self._has_warned = False

    def recall(self, key: Key, atoms: list[Any], leaves: list[Any]) -> Entry | None:
        """The entry of a call that is like an earlier one; takes no lock."""
        known = self._known.get(key)
        if known is None or (known.watched and not known.is_fresh(atoms)):
            return None
        entry = known.only(leaves)
        if entry is not None:
            entry.used = next(self._clock)
        return entry

    def among(self, key: Key, atoms: list[Any], leaves: list[Any]) -> Entry | None:
        """The entry of a call whose structure was seen with several signatures."""
        known = self._known.get(key)
        if known is None or not known.is_fresh(atoms):
            return None
        return self._use(known.among(leaves))

    def find(self, key: Key) -> Entry | None:
        """The entry with this key."""
        return self._use(self._entries.get(key))

    def _use(self, entry: Entry | None) -> Entry | None:
        """Marks an entry as used."""
        if entry is not None:
            entry.used = next(self._clock)
        return entry

    def remember(
        self, key: Key, atoms: list[Any], leaves: list[Any], entry: Entry
    ) -> None:
        """Lets calls like this one find the entry by identity."""
        known = self._known.get(key)
        if known is None or not known.is_fresh(atoms):
            known = self._known[key] = Known(atoms)
        known.add(entry, leaves)
        while len(self._known) > _KNOWN_PER_PROGRAM * self.max_programs:
            del self._known[next(iter(self._known))]

    def same(self, own: Program) -> Program:
        """The program that was compiled for the same computation, else `own`."""
        others = list(self._compiled)
        key = own.key() if others else None
        for other in others:
            if key is not None and other.key() == key:
                own.drop_key()
                return other
        self._compiled.add(own)
        return own

    def part(self, entry: Entry) -> bool:
        """Lets an entry use its own program instead of a shared one; was it shared?"""
        if entry.program is entry.own:
            return False
        entry.share(entry.own)
        self._compiled.add(entry.own)
        self._use(entry)
        return True

    def refused(self) -> None:
        """A call that was counted as found was not."""
        self._other_ticks += 1

    def add(self, entry: Entry) -> None:
        """Keeps a new entry, in place of the one that was not used for longest."""
        self._misses += 1
        self._drop(self._entries.get(entry.key))
        self._entries[entry.key] = entry
        entry.used = next(self._clock)
        self._other_ticks += 1
        while len(self._entries) > self.max_programs:
            self._drop(min(self._entries.values(), key=lambda e: e.used))

    def _drop(self, entry: Entry | None) -> None:
        """Forgets an entry."""
        if entry is None:
            return
        del self._entries[entry.key]
        for key, known in list(self._known.items()):
            if known.forget(entry):
                del self._known[key]

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
        """Counts of calls and of what is kept."""
        with lock:
            ticks = next(self._clock) - self._other_ticks
            self._other_ticks += 1
            return CacheInfo(
                hits=ticks,
                misses=self._misses,
                programs=len({id(e.program) for e in self._entries.values()}),
                structures=len(self._entries),
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
        if found is None or any(r() is not x for r, x in zip(found[0], parts)):
            try:
                refs = tuple(
                    weakref.ref(x, lambda _: _registry.pop(ids, None)) for x in parts
                )
            except TypeError:
                return Programs(max_programs)
            found = _registry[ids] = refs, {}
        return found[1].setdefault(key, Programs(max_programs))
