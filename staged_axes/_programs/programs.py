"""A program: one structure, one signature, one trace; and when two may share it.

**A program serves one signature.** Its traced function gives up the user's function
once it has been traced, and raises `Refused` if JAX wants to trace it again. So JAX's
own key (shapes, types, weak types, every setting, a mesh, the axes of a `vmap` around)
decides whether a program fits; there is no second copy of that rule here to get wrong.
A refused call is worked out anew, from its plan, with every check.

**Sharing.** A new structure is always traced. Where its jaxpr has the key of one that
was compiled before (`computation`), that program runs instead. This cannot be wrong:

- JAX compiles from jaxpr, constants, types and placement of the inputs, and settings.
  Jaxpr and constants are equal, literally; the rest is JAX's own key at the call, so
  other devices or shardings compile the same jaxpr anew, and other shapes, weak types
  or settings are refused, whereupon the structure's own program is used or made.
- Jaxprs, not lowered text, are compared: they hold the branches for every platform and
  every constant in full, whatever the text would elide or hoist out.
- Effects, ordered or not, and callbacks to Python are never shared.
- Constants are what they were when the function was traced, in both programs and at
  any later time: arrays of NumPy among them are copied before they are compared. One
  that closes over a tracer is never shared.
- The output's structure, and its leaves that are no arrays, belong to the entry, not
  to the program.
- Derivative rules are not part of the key, so a call one of whose inputs is a tracer,
  as under `grad`, `vmap` or `jit`, uses the structure's own trace.
- Rules for derivatives and callbacks run the user's code later, with the very objects
  that the function saw. Where one of those was changed in place since (`snapshot`),
  the program is refused, and the call is traced anew.
- The inputs that may be overwritten are part of the key, and so is everything else
  that `batch` was told, because only programs of equal options meet here.

**Keeping.** An entry holds its program, a program nothing of the user's function, so
the function, and with it all its programs, can be collected. The registry that lets a
fresh wrapper find them holds functions weakly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.tree_util as jtu
from attrs import define, evolve, field, frozen

from staged_axes._programs.computation import computation_key
from staged_axes._programs.likeness import likeness
from staged_axes._programs.recompiles import Fields
from staged_axes._programs.snapshot import Premise, Snapshot, can_change
from staged_axes._run.outputs import Output
from staged_axes._run.plan import Plan
from staged_axes._run.vmap import Mapped
from staged_axes._structure import tree as _tree
from staged_axes._structure.content import Key, Uncomparable

# Flattens as `jax.tree_util.tree_flatten` does, one Python frame sooner.
flatten = jtu.default_registry.flatten


class Refused(Exception):  # noqa: N818 (a signal, never seen by users)
    """A program was asked to trace again: it is not the one for this call."""


@frozen
class Parts:
    """How the leaves of a call divide.

    Attributes:
      fixed: The numbers of those that stay the Python objects they are.
      inputs: The numbers of the others, which the program takes one by one.
      donated: Which of its inputs the program may overwrite, by their places in
        `inputs`.
    """

    fixed: tuple[int, ...]
    inputs: tuple[int, ...]
    donated: tuple[int, ...]

    @classmethod
    def of(cls, is_fixed: Sequence[bool], is_donated: Sequence[bool]) -> Parts:
        """The parts, from what is said of each leaf."""
        inputs = tuple(i for i, fixed in enumerate(is_fixed) if not fixed)
        return cls(
            tuple(i for i, fixed in enumerate(is_fixed) if fixed),
            inputs,
            tuple(n for n, i in enumerate(inputs) if is_donated[i]),
        )


def taker(numbers: Sequence[int]) -> Callable[[Any], tuple[Any, ...]]:
    """Takes the items of these numbers."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda leaves: tuple(leaves[i] for i in numbers)


@define(eq=False)
class Program:
    """One jitted function of flat leaves, and the computation that it was traced to.

    Attributes:
      jitted: The function.
      computation: Its jaxpr, which the key refers to.
      key: That of the computation; None for one that is like no other.
      output: How to put an output together.
      gives_tree: Does the function do so itself? Else it gives a list of arrays.
      always: What must not have changed since the trace, whatever the call.
      if_traced: The same, for a call one of whose inputs is a tracer.
      is_told: Have listeners been told of it?
    """

    jitted: Any
    computation: Any
    key: Key | None
    output: Output
    gives_tree: bool
    always: Premise | None
    if_traced: Premise | None
    is_told: bool = field(default=False, init=False)

    def check(self, inputs: Sequence[Any]) -> None:
        """Is what the function was traced with still what it was?

        Raises:
          Refused: Something of it that counts for this call was changed in place.
        """
        premises = [self.always, self.if_traced if _any_traced(inputs) else None]
        if not all(premise is None or premise.holds() for premise in premises):
            raise Refused

    def arrays(self, out: Any) -> Sequence[Any]:
        """The arrays in what the function gave."""
        arrays: Sequence[Any] = flatten(out)[0] if self.gives_tree else out
        return arrays

    def finish(self, out: Any) -> Any:
        """The output, from what the function gave."""
        return out if self.gives_tree else self.output.rebuild(out)

    def gives_output_of(self, other: Program) -> bool:
        """Does the function give what that of the other one would?"""
        if not (self.gives_tree and other.gives_tree):
            return False
        try:
            return bool(likeness(self.output.treedef) == other.output.treedef)
        except Uncomparable:
            return False


@define(eq=False, kw_only=True)
class Entry:
    """The program of one structure for one signature.

    Attributes:
      key: By which the entry is found.
      own: What this very structure was traced to; used under transformations.
      program: What is called with plain arrays: `own`, or one that computes the same.
      parts: How the leaves divide.
      fields: What the structure was, by name.
      used: When it was last used.
      run: Takes all leaves, one by one, and gives the output.
    """

    key: Key
    own: Program
    program: Program
    parts: Parts
    fields: Fields
    used: int = 0
    run: Callable[..., Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.share(self.program)

    def share(self, program: Program) -> None:
        """Runs this program from now on."""
        self.program = program
        run = _runner(self.own, program)
        if self.parts.fixed:
            take = taker(self.parts.inputs)
            self.run = lambda *leaves: run(*take(leaves))
        else:
            self.run = run

    def inputs(self, leaves: Sequence[Any]) -> Sequence[Any]:
        """The inputs of the program, from all leaves."""
        return taker(self.parts.inputs)(leaves)


def _runner(own: Program, program: Program) -> Callable[..., Any]:
    """Runs `program`, or `own` under transformations, for the output of `own`."""
    run = _unchecked(own, program)
    if own.always is None and own.if_traced is None:
        return run

    def checked(*inputs: Any) -> Any:
        own.check(inputs)
        return run(*inputs)

    return checked


def _unchecked(own: Program, program: Program) -> Callable[..., Any]:
    """The same, whatever was changed in place."""
    jitted, mine = program.jitted, own.jitted
    if program is own:
        if own.gives_tree:
            return mine  # type: ignore[no-any-return]
        return lambda *inputs: own.output.rebuild(mine(*inputs))
    if program.gives_output_of(own):

        def run(*inputs: Any) -> Any:
            return mine(*inputs) if _any_traced(inputs) else jitted(*inputs)

    else:

        def run(*inputs: Any) -> Any:
            if _any_traced(inputs):
                return own.finish(mine(*inputs))
            return own.output.rebuild(program.arrays(jitted(*inputs)))

    return run


_untraced: set[type] = set()


def _any_traced(inputs: Sequence[Any]) -> bool:
    """Is one of them a tracer? Asked at each call, so types are remembered."""
    if _untraced.issuperset(map(type, inputs)):
        return False
    if any(isinstance(x, jax.core.Tracer) for x in inputs):
        return True
    _untraced.update(map(type, inputs))
    return False


def trace(
    mapped: Mapped,
    plan: Plan,
    parts: Parts,
    leaves: list[Any],
    treedef: Any,
    options: Mapping[str, Any],
) -> Program:
    """Traces the mapped function for a planned call; this is the only time.

    Args:
      mapped: The function and its axes.
      plan: What the call comes to.
      parts: How its leaves divide.
      leaves: All leaves of the call, the parts of BCOO arrays and the like too.
      treedef: The treedef of those leaves.
      options: Those of `jax.jit`.
    """
    outputs: list[tuple[Output, bool]] = []
    job: list[Callable[..., Any]] = []
    given = Premise.of((treedef, tuple(leaves[i] for i in parts.fixed)))

    def run(inputs: Sequence[Any]) -> Any:
        whole = list(leaves)
        for i, x in zip(parts.inputs, inputs, strict=True):
            whole[i] = x
        if len(plan.axes) != len(leaves):
            whole, _ = _tree.flatten(treedef.unflatten(whole))
        arrays, output = mapped.run(plan, whole)
        if can_change((output.treedef, *output.fixed.values())):
            own = _copied(output.treedef, output.fixed)
            output = evolve(
                output, treedef=own[0], fixed=own[1], fresh=partial(_copied, *own)
            )
        is_plain = not output.fixed and output.fresh is None
        is_tree = is_plain and not any(map(_tree.is_vmappable, arrays))
        outputs.append((output, is_tree))
        return output.rebuild(arrays) if is_tree else arrays

    def flat(*inputs: Any) -> Any:
        if not job:
            raise Refused
        return job[0](inputs)

    flat.__name__ = flat.__qualname__ = getattr(mapped.fn, "__name__", "batched")
    jitted = jax.jit(flat, donate_argnums=parts.donated, **options)
    job.append(run)
    try:
        traced = jitted.trace(*taker(parts.inputs)(leaves))
    finally:
        job.clear()
    # At once: what the function closes over may change before there is another program.
    key = computation_key(traced.jaxpr, len(parts.inputs))
    output, gives_tree = outputs[0]
    return Program(
        jitted=jitted,
        computation=traced.jaxpr,
        key=key and (key, parts.donated),
        output=output,
        gives_tree=gives_tree,
        always=given if key is None else _premise_of(output),
        if_traced=given,
    )


def _copied(treedef: Any, fixed: Mapping[int, Any]) -> tuple[Any, dict[int, Any]]:
    """An output without its arrays, with plain data of its own."""
    now = Snapshot()
    return now.treedef(treedef), {i: now.of(x) for i, x in fixed.items()}


def _premise_of(output: Output) -> Premise | None:
    """What must not have changed for an output, copied as far as it can be."""
    now = Snapshot()
    kept = now.treedef(output.treedef), tuple(map(now.of, output.fixed.values()))
    return None if now.is_whole else Premise.of(kept)
