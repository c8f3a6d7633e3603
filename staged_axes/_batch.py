"""`batch`: `vmap` and `jit` over the flat leaves, one program for each structure."""

from __future__ import annotations

import functools
import inspect
import operator
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
from attrs import evolve

from staged_axes import _provenance
from staged_axes._cache import CacheInfo, lock, programs_of
from staged_axes._calls import (
    NOT_CONCRETE,
    Call,
    Donated,
    Settled,
    explain_numbers,
    flatten,
    no_key,
    settle,
)
from staged_axes._compat import trace_settings
from staged_axes._content import Uncomparable, atoms
from staged_axes._decisions import Entries
from staged_axes._lowered import Lowered
from staged_axes._paths import nearest
from staged_axes._programs import Entry, Refused, arguments, trace
from staged_axes._recompiles import Recompiles, fields_of, other_inputs
from staged_axes._record import Record
from staged_axes._vmap import Mapped, mapped_of
from staged_axes.errors import BatchError, Problem, error, too_many_programs

_JIT_OPTIONS = ("keep_unused", "inline", "device", "backend", "compiler_options")


def batch(
    fn: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    like: Any = None,
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Iterable[str] = (),
    static_argnames: str | Iterable[str] = (),
    max_programs: int = 256,
    warn_after: int | None = 8,
    **jit_options: Any,
) -> BatchedFunction:
    """Maps and compiles a function, with one program for each structure of its input.

    As `jax.jit(jax.vmap(fn, ...))`, but static data never has to match an axes tree, is
    told apart by its types too, may be arrays, lists and dicts, and costs a trace but
    no compile where the function does not read it. A wrapper made again for the same
    function finds the programs that are there.

    Args:
      fn: The function of one example.
      in_axes: As in `vmap`.
      out_axes: As in `vmap`.
      axis_name: As in `vmap`.
      axis_size: As in `vmap`.
      spmd_axis_name: As in `vmap`.
      like: As in `vmap`; looked at only where a structure or a shape is new.
      donate_argnums: Positional arguments whose buffers the program may reuse.
      donate_argnames: The same by name.
      static_argnames: Parameters that are kept as Python values: part of the key,
        never traced. Whether they are given by position or name, they need no entry in
        `in_axes`.
      max_programs: How many structures are kept, each with one signature; the one not
        used for longest is dropped.
      warn_after: Warn once when one field alone has made this many programs; None for
        no warning.
      **jit_options: Other options of `jax.jit`: `keep_unused`, `inline`, ...

    Returns:
      The function over batches. A shared leaf that is no array (a string, a function,
      an object) is part of the key; a Python number is traced, as `jax.jit` does, unless
      its place is `STATIC`.

    Raises:
      RecordError: `in_axes` or `out_axes` cannot be read.
      BatchError: Another argument cannot be used.
      BindError: At the call: arguments and axes do not fit; with every reason.

    Example:
      >>> import jax.numpy as jnp, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.gain = None
      >>> fast = sa.batch(lambda v: v["x"] * v["gain"], in_axes=(spec,))
      >>> fast({"x": jnp.arange(3.0), "gain": 2.0})
      Array([0., 2., 4.], dtype=float32)
      >>> fast.cache_info().programs
      1
    """
    mapped = mapped_of(
        fn,
        in_axes,
        out_axes,
        axis_name=axis_name,
        axis_size=axis_size,
        spmd_axis_name=spmd_axis_name,
        like=like,
    )
    signature = mapped.in_axes.signature
    static = _names(static_argnames, signature, "static_argnames")
    numbers = (donate_argnums,) if isinstance(donate_argnums, int) else donate_argnums
    donated = Donated(
        _names(donate_argnames, signature, "donate_argnames"), frozenset(numbers)
    )
    _check_options(jit_options, max_programs)
    return BatchedFunction(
        evolve(mapped, in_axes=evolve(mapped.in_axes, static=static)),
        donated,
        jit_options,
        max_programs,
        warn_after,
    )


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
        self._said: tuple[Entries, ...] = ()
        self._ask()

    def _ask(self) -> None:
        """Looks whether a record says something new; if so, nothing is known by identity."""
        writes = Record.writes
        said = self._mapped.said()
        if len(said) != len(self._said) or any(map(operator.is_not, said, self._said)):
            self._said, self._token = said, object()
        self._writes = writes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program for these arguments; makes it where there is none."""
        if Record.writes != self._writes:
            self._ask()
        leaves, treedef = flatten(args, kwargs)
        found = atoms(treedef)
        key = (self._token, treedef, *map(id, found))
        entry = self._programs.recall(key, found, leaves)
        fault: TypeError | None = None
        if entry is not None:
            try:
                return entry(leaves)
            except Refused:
                self._programs.refused()
            except TypeError as e:  # a leaf that was an array may be none now
                self._programs.refused()
                fault = e
        if jax.config.jax_disable_jit:
            return self._eagerly(args, kwargs)
        call = Call(args, kwargs, leaves, treedef, found, key)
        begun = time.perf_counter()
        for entry in self._candidates(call, entry, fault):
            try:
                output = entry(leaves)
            except Refused:
                self._programs.refused()
            else:
                self._tell(entry, time.perf_counter() - begun)
                return output
        return self._eagerly(args, kwargs)  # JAX keeps no traces now

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
        self, call: Call, failed: Entry | None = None, fault: TypeError | None = None
    ) -> Iterator[Entry]:
        """The entries that may serve a call, likeliest first; the last one is new.

        Args:
          call: The call.
          failed: The entry that was found by identity and refused.
          fault: Where it did not refuse: why JAX did not take the leaves.
        """
        programs = self._programs
        tried = [failed]
        if failed is not None and fault is None and programs.part(failed):
            yield failed
        with lock:
            entry = programs.among(call.key, call.atoms, call.leaves)
        if entry is not None and entry is not failed:
            tried.append(entry)
            yield entry
        with lock:
            entry = self._planned(call, tried, fault)
        yield entry

    def _planned(
        self, call: Call, tried: Sequence[Entry | None], fault: TypeError | None
    ) -> Entry:
        """The entry for what the call comes to, with every check; made if need be."""
        settled = settle(self._mapped, self._donated, call)
        try:
            entry = self._programs.find(settled.key)
        except Uncomparable as e:
            raise no_key(settled.given, e) from None
        if entry is None or entry in tried:
            if entry is not None and fault is not None:
                raise fault
            entry = self._make(call, settled)
        self._programs.remember(call.key, call.atoms, call.leaves, entry)
        return entry

    def _make(self, call: Call, settled: Settled) -> Entry:
        """A new entry: one trace, and a compile where nothing equal is at hand."""
        plan, given = settled.plan, settled.given
        try:
            own, output = trace(
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
        entry = Entry(
            key=settled.key,
            own=own,
            program=self._programs.same(own),
            output=output,
            parts=settled.parts,
            fields=fields_of(given, plan.axes, trace_settings()),
        )
        self._programs.add(entry)
        if found := self._programs.too_many(entry, self._warn_after):
            source = _provenance.caller()
            warning = too_many_programs(self._name, *found)
            warnings.warn_explicit(warning, None, source.file, source.line)
        return entry

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """A call, taken apart."""
        leaves, treedef = flatten(args, kwargs)
        found = atoms(treedef)
        key = (self._token, treedef, *map(id, found))
        return Call(args, kwargs, leaves, treedef, found, key)

    def _fits(
        self, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Any]:
        """The leaves of a call that comes to this entry.

        Raises:
          BatchError: It comes to another one; with the fields that differ.
        """
        call = self._call(args, kwargs)
        settled = settle(self._mapped, self._donated, call)
        if settled.key != entry.key:
            now = fields_of(settled.given, settled.plan.axes, trace_settings())
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
        call = self._call(args, kwargs)
        for entry in self._candidates(call):
            try:
                lowered = entry.jitted.lower(*arguments(call.leaves, entry.takers))
            except Refused:
                self._programs.refused()
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
          >>> fast = sa.batch(lambda v: v["x"] * v["n"], in_axes=({"x": 0, "n": sa.STATIC},))
          >>> for n in (2, 3):
          ...     _ = fast({"x": jnp.ones(4), "n": n})
          >>> print(fast.explain_recompiles())
          <lambda>: 2 programs for 2 structures
            ['n']: 2, 3  (2 programs)
        """
        return self._programs.explain(self._name)

    def __repr__(self) -> str:
        info = self.cache_info()
        return f"<batched {self._name}: {info.programs} programs>"


def _names(
    names: str | Iterable[str], signature: inspect.Signature | None, label: str
) -> frozenset[str]:
    """The names of parameters, as `jax.jit` takes them.

    Raises:
      BatchError: One is no parameter.
    """
    given = frozenset((names,) if isinstance(names, str) else names)
    parameters = signature.parameters if signature else {}
    is_open = not signature or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if is_open else sorted(given - set(parameters))
    if unknown:
        like = nearest(unknown[0], parameters)
        raise error(
            BatchError,
            f"{label} names what is no parameter: {', '.join(unknown)}.",
            *(
                Problem(
                    kind="argument",
                    path=f"{label}={name!r}",
                    there=f"the parameters are {', '.join(parameters)}",
                )
                for name in unknown
            ),
            fixes=[f"did you mean {like[0]!r}?"] if like else [],
        )
    return given


def _check_options(options: Mapping[str, Any], max_programs: int) -> None:
    """Refuses options that the flat program cannot have.

    Raises:
      BatchError: An option is unknown, or makes no sense here.
    """
    unknown = [name for name in options if name not in _JIT_OPTIONS]
    if unknown:
        raise error(
            BatchError,
            f"batch does not take {', '.join(unknown)}.",
            *(Problem(kind="argument", path=name) for name in unknown),
            fixes=[
                "static arguments go by name: static_argnames",
                f"of jax.jit's other options it takes {', '.join(_JIT_OPTIONS)}",
            ],
        )
    if isinstance(max_programs, bool) or not (
        isinstance(max_programs, int) and max_programs > 0
    ):
        raise error(
            BatchError,
            f"max_programs is how many are kept, at least 1, not {max_programs!r:.40}.",
            Problem(
                kind="argument", path="max_programs", there=repr(max_programs)[:40]
            ),
        )
