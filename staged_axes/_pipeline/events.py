"""What a pipeline tells while it works, and the hook that writes it to a log."""

from __future__ import annotations

import logging
from typing import Literal, Protocol

from attrs import field, frozen

from staged_axes._bind.bound import BoundAxes
from staged_axes._record.decisions import Decision, Rule
from staged_axes._words.news import Bound, Compiled, error_text

Kind = Literal["started", "finished", "failed", "bound", "compiled", "recompiled"]


@frozen(kw_only=True)
class StageEvent:
    """One thing that happened in a pipeline; `str()` says it in a line.

    Attributes:
      kind: `"started"`, `"finished"` or `"failed"`: a stage. `"bound"`: a value was
        bound. `"compiled"`: a function's first program; `"recompiled"`: one more.
      stage: The name of the stage. None for what is not part of one: bind, compile.
      run: Which call of `run` or `record` this belongs to, counted in this process.
        None for what may happen at any time: bound, compiled, recompiled.
      index: The place of the stage among those of the run, from 1.
      count: How many stages the run has.
      seconds: How long it took. None when it has only started.
      decisions: What the stage decided: each has `place`, `payload` and `source`. Only
        when finished.
      error: What was raised. Only when failed; with stage None, by the bind at the end.
      axes: The bound axes. Only when bound.
      function: The name of the function. Only when compiled or recompiled.
      programs: How many programs it has now. Only when compiled or recompiled.
      why: The fields that made another program necessary, in short. Only when
        recompiled, and empty where that is not known.

    Example:
      >>> import staged_axes as sa
      >>> print(sa.StageEvent(kind="started", stage="nodes", index=1, count=3))
      [1/3] nodes started
    """

    kind: Kind
    stage: str | None = None
    run: int | None = None
    index: int = 0
    count: int = 0
    seconds: float | None = None
    decisions: tuple[Decision | Rule, ...] = ()
    error: BaseException | None = field(default=None, eq=False)
    axes: BoundAxes | None = None
    function: str | None = None
    programs: int | None = None
    why: str = ""

    def __str__(self) -> str:
        took = "" if self.seconds is None else f", {self.seconds:.3g} s"
        where = f"[{self.index}/{self.count}] {self.stage}" if self.stage else "bind"
        if self.kind == "started":
            return f"{where} started"
        if self.kind == "finished":
            n = len(self.decisions)
            return f"{where}: {n} {'decision' if n == 1 else 'decisions'}{took}"
        if self.error is not None:
            return f"{where} failed{took}: {error_text(self.error)}"
        if self.axes is not None:
            return f"{self.kind} {self.axes!r}{took}"
        why = f": {self.why}" if self.why else ""
        return f"{self.kind} {self.function}, program {self.programs}{took}{why}"


class StageHook(Protocol):
    """Whatever `Pipeline.subscribe` takes: it is called with each event.

    It is called in the thread in which things happen, so perhaps in several at once.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> def hook(event: sa.StageEvent) -> None:
      ...     print(event.kind, event.stage)
      >>> pipe = sa.Pipeline(default=0)
      >>> stop = pipe.subscribe(hook)
      >>> staged = pipe.run(np.ones(3))
      bound None
    """

    def __call__(self, event: StageEvent, /) -> object:
        """Takes note of one event."""


def event_of(news: Bound | Compiled) -> StageEvent:
    """What happened to a record, as an event."""
    if isinstance(news, Bound):
        return StageEvent(kind="bound", axes=news.axes, seconds=news.seconds)
    return StageEvent(
        kind="recompiled" if news.programs > 1 else "compiled",
        function=news.function,
        programs=news.programs,
        seconds=news.seconds,
        why=news.why,
    )


def log_events(logger: logging.Logger) -> StageHook:
    """A hook that writes events to a logger of the standard library.

    Starts are `DEBUG`, failures `ERROR`, all else is `INFO`. Handlers find the event
    itself in `record.stage_event`.

    Args:
      logger: As `logging.getLogger` gives it.

    Example:
      >>> import logging, staged_axes as sa
      >>> pipe = sa.Pipeline(default=0)
      >>> stop = pipe.subscribe(sa.log_events(logging.getLogger("training")))
    """
    levels = {"started": logging.DEBUG, "failed": logging.ERROR}

    def log(event: StageEvent, /) -> None:
        level = levels.get(event.kind, logging.INFO)
        logger.log(level, "%s", event, extra={"stage_event": event})

    return log
