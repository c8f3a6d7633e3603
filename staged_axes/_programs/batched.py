"""A mapped and compiled function: the way of a call to its program."""

from __future__ import annotations

import functools
import operator
import time
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from staged_axes._compat import is_jit_disabled, trace_settings
from staged_axes._programs.cache import NOTHING, CacheInfo, Known, lock, programs_of
from staged_axes._programs.calls import (
    NOT_CONCRETE,
    Call,
    Donated,
    Settled,
    explain_numbers,
    no_key,
    settle,
    structure_key,
)
from staged_axes._programs.lowered import Lowered
from staged_axes._programs.programs import Entry, Refused, flatten, trace
from staged_axes._programs.recompiles import Recompiles, fields_of, other_inputs
from staged_axes._record.decisions import Entries
from staged_axes._record.record import Record
from staged_axes._run.vmap import Mapped
from staged_axes._structure.content import Key, Uncomparable
from staged_axes._words import provenance as _provenance
from staged_axes.errors import too_many_programs

_MOST_GUESSES = 1024


class BatchedFunction:
    """A mapped and compiled function; made by `batch`, not by hand.

    It works under `grad`, `vmap`, `jit` and `scan` as any traced function does, and may
    be called from several threads.
    """

    def __init__(
        self,
        mapped: Mapped,
        donated: Donated,
        options: Mapping[str, Any],
        max_programs: int,
        warn_after: int | None,
    ) -> None:
        functools.update_wrapper(self, mapped.fn, updated=())
        self._mapped = mapped
        self._donated = donated
        self._options = options
        self._warn_after = warn_after
        self._name = getattr(mapped.fn, "__name__", type(mapped.fn).__name__)
        self._programs = programs_of(
            mapped.fn,
            (
                mapped.options,
                mapped.axis_size,
                mapped.in_axes.static,
                donated.names,
                donated.numbers,
                options,
            ),
            max_programs,
        )
        self._last = NOTHING
        self._guesses: dict[int, Known] = {}
        self._said: tuple[Entries, ...] = ()
        self._ask()

    def _ask(self) -> None:
        """Looks whether a record says something new; if so, forgets what led where."""
        writes = Record.writes
        said = self._mapped.said()
        if len(said) != len(self._said) or any(map(operator.is_not, said, self._said)):
            self._said, self._token = said, object()
            self._last, self._guesses = NOTHING, {}
        self._writes = writes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program for these arguments; makes it where there is none."""
        # Each line up to `run` is paid at every call.
        try:
            leaves, treedef = flatten((args, kwargs) if kwargs else args)
        except (RecursionError, SystemError):  # a container that holds itself
            return self._eagerly(args, kwargs)
        known = self._last
        if known.structure == treedef and known.writes == Record.writes:
            try:
                return known.run(*leaves)
            except Refused:
                pass
            except TypeError as e:  # a leaf that was an array may be none now
                return self._otherwise(Call(args, kwargs, leaves, treedef), e)
        return self._otherwise(Call(args, kwargs, leaves, treedef))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a method, it is given its object first."""
        return self if instance is None else types.MethodType(self, instance)

    def _otherwise(self, call: Call, fault: TypeError | None = None) -> Any:
        """Serves a call that is not like the one before it.

        Args:
          call: The call.
          fault: Why JAX did not take its leaves, if the structure was that one's.
        """
        known = self._guesses.get(id(call.args[0])) if call.args else None
        if known is not None and known.structure == call.treedef:
            only = known.only
            if only is not None and known.writes == Record.writes and fault is None:
                self._last = known
                self._programs.use(only)
                try:
                    return only.run(*call.leaves)
                except (Refused, TypeError):
                    pass
        if is_jit_disabled():
            return self._eagerly(call.args, call.kwargs)
        begun = time.perf_counter()
        for entry in self._candidates(call, fault):
            try:
                output = entry.run(*call.leaves)
            except Refused:
                pass
            else:
                self._tell(entry, time.perf_counter() - begun)
                return output
        return self._eagerly(call.args, call.kwargs)  # JAX keeps no traces now

    def _tell(self, entry: Entry, seconds: float) -> None:
        """Tells whoever listens to the records of a program that ran first."""
        with lock:
            if entry.program.is_told:
                return
            entry.program.is_told = True
        everyone = self._mapped.everyone()
        records = {id(says): says for says in everyone if isinstance(says, Record)}
        listeners = [r.listeners for r in records.values() if r.listeners]
        if listeners:
            news = self._programs.news(entry, self._name, seconds)
            for each in listeners:
                each.tell(news)

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result without a program."""
        plan, leaves = self._mapped.plan(args, kwargs)
        arrays, output = self._mapped.run(plan, leaves)
        return output.rebuild(arrays)

    def _candidates(
        self, call: Call, fault: TypeError | None = None
    ) -> Iterator[Entry]:
        """The entries that may serve a call, likeliest first; the last one is new."""
        programs = self._programs
        with lock:
            key, known = self._recognise(call)
            seen = None if known is None else known.entry(call.leaves)
            if seen is not None:
                programs.use(seen)
        if seen is not None:
            if fault is not None:
                raise fault
            yield seen
            if self._part(seen):
                yield seen
        entry, is_new = self._planned(call, key, seen)
        yield entry
        if self._part(entry):
            yield entry
        if not is_new:  # what it was traced with may have changed in place
            yield self._planned(call, key, entry)[0]

    def _part(self, entry: Entry) -> bool:
        """Lets an entry use its own program instead of a shared one; was it shared?"""
        with lock:
            return self._programs.part(entry)

    def _recognise(self, call: Call) -> tuple[tuple[object, Key], Known | None]:
        """The key of the structure of a call, and the structure if it was seen."""
        if Record.writes != self._writes:
            self._ask()
        last = self._last
        if last.structure == call.treedef and last.key[0] is self._token:
            last.writes = self._writes
            return last.key, last
        key = (self._token, structure_key(self._mapped, call))
        try:
            known = self._programs.known(key)
        except Uncomparable as e:
            raise no_key(
                self._mapped.in_axes.place(call.args, call.kwargs), e
            ) from None
        if known is not None:
            # The same data in other objects, which may well come again.
            known.structure = call.likeness()
            known.writes = self._writes
            self._guess(call, known)
        return key, known

    def _guess(self, call: Call, known: Known) -> None:
        """Lets the next call like this one be compared with this structure."""
        self._last = known
        if call.args:
            if len(self._guesses) >= _MOST_GUESSES:
                self._guesses = {}
            self._guesses[id(call.args[0])] = known

    def _planned(
        self, call: Call, key: tuple[object, Key], refused: Entry | None
    ) -> tuple[Entry, bool]:
        """The entry for what a call comes to, with every check; and whether it is new.

        Raises:
          BatchError: Static data gives no key.
        """
        settled = settle(self._mapped, self._donated, call, key[1])
        try:
            with self._programs.turns.take(settled.key):
                with lock:
                    entry = self._programs.find(settled.key)
                is_new = False
                if entry is None or entry is refused:
                    entry, is_new = self._make(call, settled), True
        except Uncomparable as e:
            raise no_key(settled.given, e) from None
        with lock:
            self._programs.use(entry)
            if settled.plan.is_general:
                structure = call.likeness()
                known = self._programs.remember(key, structure, call.leaves, entry)
                known.writes = self._writes
                self._guess(call, known)
        return entry, is_new

    def _make(self, call: Call, settled: Settled) -> Entry:
        """A new entry: one trace, and a compile where nothing equal is at hand."""
        plan, given = settled.plan, settled.given
        try:
            own = trace(
                self._mapped,
                plan,
                settled.parts,
                call.leaves,
                call.treedef,
                self._options,
            )
        except NOT_CONCRETE as e:
            explain_numbers(e, plan, given)
            raise
        fields = fields_of(given, plan, trace_settings())
        with lock:
            entry = Entry(
                key=settled.key,
                own=own,
                program=self._programs.same(own),
                parts=settled.parts,
                fields=fields,
            )
            self._programs.add(entry)
            found = self._programs.too_many(entry, self._warn_after)
        if found:
            source = _provenance.caller()
            warning = too_many_programs(self._name, *found)
            warnings.warn_explicit(warning, None, source.file, source.line)
        return entry

    def _fits(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Any]:
        """The leaves of a call that comes to this entry.

        Raises:
          BatchError: It comes to another one; with the fields that differ.
        """
        call = Call.of(args, kwargs)
        structure = structure_key(self._mapped, call)
        settled = settle(self._mapped, self._donated, call, structure)
        if settled.key != entry.key:
            now = fields_of(settled.given, settled.plan, trace_settings())
            raise other_inputs(entry.fields, now)
        return call.leaves

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lowers the program for these arguments, without running it.

        Args:
          *args: As for the call; `jax.ShapeDtypeStruct` will do for arrays.
          **kwargs: The same.

        Returns:
          As `jax.jit(fn).lower` does: `as_text()`, `compile()`, `cost_analysis()`.

        Raises:
          BindError: Arguments and axes do not fit; with every reason.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> fast = sa.batch(lambda x: 2 * x)
          >>> compiled = fast.lower(jnp.arange(3.0)).compile()
          >>> compiled(jnp.ones(3))
          Array([2., 2., 2.], dtype=float32)
        """
        call = Call.of(args, kwargs)
        for entry in self._candidates(call):
            try:
                lowered = entry.own.jitted.lower(*entry.inputs(call.leaves))
            except Refused:
                pass
            else:
                return Lowered(self._fits, entry, lowered)
        raise AssertionError  # the last candidate is new

    def cache_info(self) -> CacheInfo:
        """How calls were served, and what is kept.

        Counts are those of all wrappers of the function with equal options.
        """
        return self._programs.info()

    def cache_clear(self) -> None:
        """Drops all programs of the function with these options."""
        self._programs.clear()

    def explain_recompiles(self) -> Recompiles:
        """Which fields, by name, made the kept structures differ.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> axes = {"x": 0, "n": sa.STATIC}
          >>> fast = sa.batch(lambda v: v["x"] * v["n"], in_axes=(axes,))
          >>> for n in (2, 3):
          ...     _ = fast({"x": jnp.ones(4), "n": n})
          >>> print(fast.explain_recompiles())
          <lambda>: 2 programs for 2 structures
            ['n']: 2, 3  (2 programs)
        """
        return self._programs.explain(self._name)

    def __repr__(self) -> str:
        n = self.cache_info().programs
        return f"<batched {self._name}: {n} {'program' if n == 1 else 'programs'}>"
