"""A program: one structure, one signature, one trace; and when two may share it.

**A program serves one signature.** Its traced function gives up the user's function
once it has been traced, and raises `Refused` if JAX wants to trace it again. So JAX's
own key (shapes, types, weak types, every setting, a mesh, the axes of a `vmap` around)
decides whether a program fits; there is no second copy of that rule here to get wrong.
A refused call is worked out anew, from its plan, with every check.

**Sharing.** A new structure is always traced. Where its jaxpr has the key of one that
was compiled before (`_computation`), that program runs instead. This cannot be wrong:

- JAX compiles from jaxpr, constants, types and placement of the inputs, and settings.
  Jaxpr and constants are equal, literally; the rest is JAX's own key at the call, so
  other devices or shardings compile the same jaxpr anew, and other shapes, weak types
  or settings are refused, whereupon the structure's own program is used or made.
- Jaxprs, not lowered text, are compared: they hold the branches for every platform and
  every constant in full, whatever the text would elide or hoist out.
- Effects, ordered or not, and callbacks to Python are never shared.
- The output's structure and its leaves that are no arrays belong to the entry, not to
  the program.
- Derivative rules are not part of the key, so a call under `grad`, `jvp`, `vmap` or
  `jit`, one of whose inputs is a tracer, uses the structure's own trace.
- Constants that are tracers are never shared, and donation is the same for all
  programs that can meet here.

**Keeping.** An entry holds its program, a program nothing of the user's function, so
the function, and with it all its programs, can be collected. The registry that lets a
fresh wrapper find them holds functions weakly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import jax
from attrs import define, field, frozen

from staged_axes import _tree
from staged_axes._computation import computation_key
from staged_axes._content import Key
from staged_axes._outputs import Output
from staged_axes._recompiles import Fields
from staged_axes._vmap import Mapped, Plan


class Refused(Exception):  # noqa: N818 (a signal, never seen by users)
    """A program was asked to trace again: it is not the one for this call."""


@frozen
class Parts:
    """How the leaves of a call divide: kept as they are, donated, and other inputs."""

    fixed: tuple[int, ...]
    donated: tuple[int, ...]
    inputs: tuple[int, ...]

    @classmethod
    def of(cls, is_fixed: Sequence[bool], is_donated: Sequence[bool]) -> Parts:
        """The numbers of the leaves of each kind."""
        every = range(len(is_fixed))
        traced = [i for i in every if not is_fixed[i]]
        return cls(
            tuple(i for i in every if is_fixed[i]),
            tuple(i for i in traced if is_donated[i]),
            tuple(i for i in traced if not is_donated[i]),
        )

    def takers(self) -> tuple[Callable[[Any], Any], ...] | None:
        """What takes each argument of the program from the leaves; None for all."""
        if not self.fixed and not self.donated:
            return None
        groups = (self.donated, self.inputs) if self.donated else (self.inputs,)
        return tuple(taker(group) for group in groups)

    def join(self, leaves: list[Any], groups: Sequence[Any]) -> list[Any]:
        """The leaves of the call, with the traced ones in place."""
        whole = list(leaves) if self.fixed else [None] * len(leaves)
        order = (*self.donated, *self.inputs)
        for i, x in zip(order, itertools.chain(*groups), strict=True):
            whole[i] = x
        return whole


def arguments(leaves: list[Any], takers: Any) -> list[Any]:
    """The arguments of a program, from the leaves of a call."""
    return [leaves] if takers is None else [take(leaves) for take in takers]


def taker(numbers: Sequence[int]) -> Callable[[Any], Any]:
    """Takes the items of these numbers, as a tuple."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda leaves: tuple(leaves[i] for i in numbers)


@define(eq=False)
class Program:
    """One jitted function of flat leaves, and the computation that it was traced to.

    Attributes:
      jitted: The function.
      computation: What it was traced to.
      is_told: Have listeners been told of it?
    """

    jitted: Any
    computation: Any
    is_told: bool = field(default=False, init=False)
    _key: Any = ()

    def key(self) -> Key | None:
        """The key of the computation, worked out when first asked for."""
        if self._key == ():
            self._key = computation_key(self.computation)
        return self._key  # type: ignore[no-any-return]

    def drop_key(self) -> None:
        """Forgets the key, which can be as large as the computation."""
        self._key = None


@define(eq=False, kw_only=True)
class Entry:
    """The program of one structure for one signature.

    Attributes:
      key: By which the entry is found.
      own: What this very structure was traced to; used under transformations.
      program: What is called with plain arrays: `own`, or one that computes the same.
      output: How to put the output together.
      parts: How the leaves divide.
      fields: What the structure was, by name.
      used: When it was last used.
    """

    key: Key
    own: Program
    program: Program
    output: Output
    parts: Parts
    fields: Fields
    used: int = 0
    jitted: Any = field(init=False)
    takers: tuple[Callable[[Any], Any], ...] | None = field(init=False)
    rebuild: Callable[[Any], Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.share(self.program)
        self.takers = self.parts.takers()
        is_plain = not self.output.fixed
        self.rebuild = (
            self.output.treedef.unflatten if is_plain else self.output.rebuild
        )

    def __call__(self, leaves: list[Any]) -> Any:
        """Runs the program."""
        jitted = self.jitted
        if self.own is not self.program and _any_traced(leaves):
            jitted = self.own.jitted
        if self.takers is None:
            return self.rebuild(jitted(leaves))
        return self.rebuild(jitted(*arguments(leaves, self.takers)))

    def share(self, program: Program) -> None:
        """Runs this program from now on."""
        self.program = program
        self.jitted = program.jitted


def _any_traced(leaves: list[Any]) -> bool:
    """Is one of the leaves a tracer?"""
    return any(issubclass(t, jax.core.Tracer) for t in set(map(type, leaves)))


def trace(
    mapped: Mapped,
    plan: Plan,
    parts: Parts,
    leaves: list[Any],
    treedef: Any,
    options: Mapping[str, Any],
) -> tuple[Program, Output]:
    """Traces the mapped function for a planned call; this is the only time.

    Args:
      mapped: The function and its axes.
      plan: What the call comes to.
      parts: How its leaves divide.
      leaves: All leaves of the call, the parts of BCOO arrays and the like too.
      treedef: The treedef of those leaves.
      options: Those of `jax.jit`.

    Returns:
      The program, and how to put its output together.
    """
    outputs: list[Output] = []
    job: list[Callable[..., list[Any]]] = []

    def run(*groups: Any) -> list[Any]:
        whole = parts.join(leaves, groups)
        if len(plan.axes) != len(leaves):
            whole, _ = _tree.flatten(treedef.unflatten(whole))
        arrays, output = mapped.run(plan, whole)
        outputs.append(output)
        return arrays

    def flat(*groups: Any) -> list[Any]:
        if not job:
            raise Refused
        return job[0](*groups)

    flat.__name__ = flat.__qualname__ = getattr(mapped.fn, "__name__", "batched")
    jitted = jax.jit(flat, donate_argnums=(0,) if parts.donated else (), **options)
    job.append(run)
    try:
        traced = jitted.trace(*arguments(leaves, parts.takers()))
    finally:
        job.clear()
    return Program(jitted, traced.jaxpr), outputs[0]
