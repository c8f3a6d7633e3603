"""`Pipeline`: a program in named stages, each of which decides and builds its part."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from staged_axes._bind.builder import AxesBuilder
from staged_axes._pipeline.events import StageHook, event_of
from staged_axes._pipeline.stages import (
    Part,
    Pass,
    Staged,
    builder_of,
    check_hook,
    from_stage,
    known,
    names_of,
    part_of,
)
from staged_axes._programs.batched import BatchedFunction
from staged_axes._record import record as _record
from staged_axes._record.decisions import Stage
from staged_axes._record.staging import Run
from staged_axes._words.news import Guarded, Listeners
from staged_axes.errors import PipelineError, Problem, error

Function = TypeVar("Function", bound=Callable[[Any, Any], Any])
_runs = itertools.count(1)


class Pipeline:
    """Named stages, each of which decides its part of the axes and builds its data.

    A stage is a function `(axes, state) -> state`, or an object with a `record(axes)`
    hook, a `build(state)` hook, or both: a rex node, a wrapper, an environment. Stages
    run in the order in which they were added, except that those named in `after` come
    first. What a stage decides carries its name, and each run of a stage replaces what
    it decided before.

    Args:
      cls: The class of the state, as for `AxesBuilder`.
      default: The axis of leaves for which nobody decides, as for `AxesBuilder`.
      spec: A builder to record in, in place of a new one. Several pipelines may share
        it; their stages are told apart even where they have one name.

    Attributes:
      spec: The builder that all stages record in.
      state: What the stage that failed in the last run was given, to go on with; for a
        last state that could not be bound, that state. None after a run that succeeded.

    Raises:
      PipelineError: There are both a builder and what it has of its own.

    Example:
      >>> import jax.numpy as jnp, staged_axes as sa
      >>> pipe = sa.Pipeline(default=None)
      >>> @pipe.stage
      ... def masses(axes, state):
      ...     axes.mass = 0
      ...     return {**state, "mass": jnp.array([1.0, 2.0, 3.0])}
      >>> staged = pipe.run({"gravity": 9.81})
      >>> staged.bound
      <BoundAxes: 1 of 2 leaves mapped, batch size 3>
    """

    def __init__(
        self, cls: Any = None, *, default: Any = 0, spec: AxesBuilder | None = None
    ) -> None:
        self.spec = builder_of(cls, default, spec)
        self.state: Any = None
        self._owner = next(_record.owners)
        self._parts: dict[str, Part] = {}
        self._made: dict[str, Run] = {}
        self._hooks = Listeners()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<Pipeline: {' -> '.join(self._parts) or 'no stages'}>"

    # Stages ---------------------------------------------------------------------

    @overload
    def stage(self, name: Function, /) -> Function: ...
    @overload
    def stage(
        self, name: str, /, *, after: str | Iterable[str] = (), override: bool = False
    ) -> Callable[[Function], Function]: ...
    def stage(
        self, name: Any, /, *, after: str | Iterable[str] = (), override: bool = False
    ) -> Any:
        """Adds the decorated function as a stage; the function stays as it is.

        `@pipe.stage` names the stage after the function, `@pipe.stage("name")` as it
        says.

        Args:
          name: The name, or the function itself.
          after: The name or names of stages that run before, added already or not yet.
          override: May the stage decide differently from those before it?

        Raises:
          PipelineError: The name is taken, or there is no function of `(axes, state)`.

        Example:
          >>> import staged_axes as sa
          >>> pipe = sa.Pipeline(default=None)
          >>> @pipe.stage("delays", after="nodes")
          ... def _(axes, state):
          ...     axes.delay = 0
          ...     return state
          >>> @pipe.stage
          ... def nodes(axes, state):
          ...     return {"delay": [0.1, 0.2]}
        """
        if not isinstance(name, str):
            self.add(getattr(name, "__name__", ""), name)
            return name

        def decorate(fn: Function) -> Function:
            self.add(name, fn, after=after, override=override)
            return fn

        return decorate

    def add(
        self,
        name: str,
        stage: Any,
        *,
        after: str | Iterable[str] = (),
        override: bool = False,
    ) -> None:
        """Adds a stage: a function, or an object with hooks.

        Args:
          name: A name that no other stage has.
          stage: A function `(axes, state) -> state`, or an object with a method
            `record(axes)`, which decides and needs no data, a method `build(state)`,
            which returns the next state, or both.
          after: The name or names of stages that run before, added already or not yet.
          override: May the stage decide differently from those before it?

        Raises:
          PipelineError: The name is taken, or it is no stage.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> class World:
          ...     def record(self, axes):
          ...         axes.mass = 0
          ...     def build(self, state):
          ...         return {**state, "mass": np.ones(3)}
          >>> pipe = sa.Pipeline(default=None)
          >>> pipe.add("world", World())
          >>> pipe.run({}).bound.leaf_axes
          (0,)
        """
        part = part_of(name, stage, after, override)
        with self._lock:
            if name in self._parts:
                raise error(
                    PipelineError,
                    f"the pipeline has a stage {name!r} already.",
                    Problem(kind="stage", path=name, there="added before", stage=name),
                    fixes=[f"pipe.replace({name!r}, stage)", "take another name"],
                )
            self._parts[name] = part

    def replace(self, name: str, stage: Any) -> None:
        """Puts another stage in the place of one, with its name and its order.

        What the old one decided holds until the new one runs.

        Args:
          name: The name of a stage.
          stage: As for `add`.

        Raises:
          PipelineError: There is no such stage, or the new one is none.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> pipe = sa.Pipeline(default=0)
          >>> pipe.add("masses", lambda axes, state: np.ones(3))
          >>> pipe.replace("masses", lambda axes, state: np.ones(5))
          >>> pipe.run(None).bound.batch_size
          5
        """
        with self._lock:
            known(names_of([name]), self._parts, f"pipe.replace({name!r}, ...)")
            old = self._parts[name]
            self._parts[name] = part_of(name, stage, old.after, old.override)

    # Running --------------------------------------------------------------------

    def record(self, *, skip: str | Iterable[str] = ()) -> AxesBuilder:
        """Lets every stage with a `record` hook decide, before there is any data.

        Stages that disagree are found out here. Functions decide and build in one go,
        so they have no part in this: they decide when they run, and so do the hooks,
        once more. All that stages decided in an earlier run is taken back first; a hook
        that raises leaves what those before it decided.

        Args:
          skip: The name or names of stages to leave out.

        Returns:
          `spec`, with these decisions.

        Raises:
          PipelineError: There is no such stage, or stages wait for each other.
          ConflictError: Two stages decide one place differently.

        Example:
          >>> import staged_axes as sa
          >>> class World:
          ...     def record(self, axes):
          ...         axes.mass = 0
          >>> pipe = sa.Pipeline(default=None)
          >>> pipe.add("world", World())
          >>> pipe.record()
          <AxesBuilder: 1 decision, 0 rules, default None>
        """
        with self._lock:
            parts = self._begin(skip)
            run = self._pass([p for p in parts if p.record is not None])
            for part in run.parts:
                with run.stage(part):
                    part.decide(self.spec)
            return self.spec

    def run(
        self,
        state: Any,
        *,
        start_at: str | None = None,
        skip: str | Iterable[str] = (),
    ) -> Staged:
        """Runs the stages, each on what the one before returned, and binds the last.

        One run at a time: a second thread waits. A stage that raises leaves the record
        with exactly what the stages before it decided; its exception passes unchanged,
        with a note that names the stage, and `pipe.run(pipe.state, start_at=name)` goes
        on from there.

        Args:
          state: What the first stage is given. Not changed, unless a stage does.
          start_at: The stage to start at. Those before it do not run; what they decided
            last is kept.
          skip: The name or names of stages to leave out; what they decided in an
            earlier run is taken back.

        Returns:
          The last state and its axes.

        Raises:
          PipelineError: There is no such stage, stages wait for each other, or one
            returns None.
          ConflictError: Two stages decide one place differently.
          BindError: Record and last state do not fit.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> pipe = sa.Pipeline(default=0)
          >>> @pipe.stage
          ... def masses(axes, state):
          ...     return {"mass": np.ones(state)}
          >>> pipe.run(3).bound.batch_size
          3
        """
        with self._lock:
            run = self._pass(self._begin(skip, start_at))
            for part in run.parts:
                self.state = state
                with run.stage(part):
                    state = part.run(self.spec, state)
            self.state = state
            bound = run.bind(state)
            self.state = None
            return Staged(state, bound)

    def _begin(
        self, skip: str | Iterable[str], start_at: str | None = None
    ) -> list[Part]:
        """The stages to run; what they and those left out decided is taken back."""
        parts = from_stage(start_at, self._parts)
        left_out = names_of(skip)
        known(left_out, self._parts, f"skip={skip!r}")
        again = {part.name for part in parts}
        record = self.spec.__record__
        for name in [name for name in reversed(self._made) if name in again]:
            record.take_back(self._made.pop(name))
        # Where a stage around an earlier run failed, decisions came back with it.
        for name in again:
            record.forget_stage(Stage(name, self._owner))
        return [part for part in parts if part.name not in left_out]

    def _pass(self, parts: list[Part]) -> Pass:
        """One pass over some stages."""
        record = self.spec.__record__
        return Pass(next(_runs), parts, self._owner, record, self._hooks, self._made)

    def batch(
        self, fn: Callable[..., Any], out_axes: Any = 0, **options: Any
    ) -> BatchedFunction:
        """Maps and compiles a function of the state; this is `spec.batch`.

        What stages decide later counts from the next call of the function on.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> pipe = sa.Pipeline(default=0)
          >>> pipe.add("masses", lambda axes, state: {"mass": np.arange(3.0)})
          >>> weigh = pipe.batch(lambda state: 9.5 * state["mass"])
          >>> weigh(pipe.run({}).value)
          Array([ 0. ,  9.5, 19. ], dtype=float32)
        """
        return self.spec.batch(fn, out_axes, **options)

    # Watching -------------------------------------------------------------------

    def subscribe(self, hook: StageHook) -> Callable[[], None]:
        """Tells a hook of everything that happens from now on.

        That is: stages that start, finish and fail; values that are bound and functions
        that are compiled with `spec`, whoever does it. An error of the hook does no
        harm: the first one becomes a warning with its name.

        Args:
          hook: Called with each `StageEvent`, in the thread in which it happens.

        Returns:
          A function that ends it.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> pipe = sa.Pipeline(default=0)
          >>> pipe.add("masses", lambda axes, state: np.ones(3))
          >>> stop = pipe.subscribe(lambda event: print(event.kind, event.stage))
          >>> staged = pipe.run(None)
          started masses
          finished masses
          bound None
          >>> stop()
        """
        check_hook(hook)
        guarded = Guarded(hook)
        stops = (
            self._hooks.add(guarded),
            self.spec.__record__.listeners.add(lambda news: guarded(event_of(news))),
        )

        def stop() -> None:
            for end in stops:
                end()

        return stop
