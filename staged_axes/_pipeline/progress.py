"""A hook that shows how far a pipeline is: bars on a terminal, else plain lines."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from attrs import define, field

from staged_axes._pipeline.events import StageEvent, StageHook

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID


def progress() -> StageHook:
    """A hook that shows, on standard error, how far a pipeline is.

    On a terminal, a bar for each run and a line for what is bound and compiled above
    it. Elsewhere (a file, a pipe, a notebook, a dumb terminal), a plain line for each
    stage that ends and for what is bound and compiled.

    Example:
      >>> import staged_axes as sa
      >>> pipe = sa.Pipeline(default=0)
      >>> stop = pipe.subscribe(sa.progress())
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        return _Lines(console)
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    stage = TextColumn("{task.description}", markup=False)
    columns = (stage, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return _Bars(_Lines(console), Progress(*columns, console=console))


@define(eq=False)
class _Lines:
    """A plain line for each event that says something is done."""

    console: Console

    def __call__(self, event: StageEvent, /) -> None:
        """Prints one event."""
        if event.kind != "started":
            self.console.print(
                str(event), markup=False, highlight=False, soft_wrap=True
            )


@define(eq=False)
class _Bars:
    """A bar for each run that goes on, and lines above them."""

    lines: _Lines
    progress: Progress
    tasks: dict[int | None, TaskID] = field(factory=dict, init=False)
    lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __call__(self, event: StageEvent, /) -> None:
        """Shows one event."""
        with self.lock:
            if event.kind == "started":
                self._start(event)
            elif event.kind == "finished":
                self.progress.advance(self.tasks[event.run])
                if event.index == event.count:
                    self._end(event)
            else:
                self.lines(event)
                if event.kind == "failed":
                    self._end(event)

    def _start(self, event: StageEvent) -> None:
        """Puts the name of a stage before the bar of its run."""
        name = str(event.stage)
        if event.run not in self.tasks:
            self.tasks[event.run] = self.progress.add_task(name, total=event.count)
            self.progress.start()
        self.progress.update(self.tasks[event.run], description=name)

    def _end(self, event: StageEvent) -> None:
        """Leaves the bars as they are once no run goes on."""
        self.tasks.pop(event.run, None)
        if not self.tasks:
            self.progress.stop()
            for task in self.progress.task_ids:
                self.progress.remove_task(task)
