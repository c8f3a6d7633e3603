"""Which stage is open: what is written in a thread or a task is written by that one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeVar

from attrs import define, field, frozen

from staged_axes._record.decisions import Change, Stage
from staged_axes._words.display import short
from staged_axes.errors import Problem, RecordError, error

Function = TypeVar("Function", bound=Callable[..., Any])


@define(eq=False)
class Run:
    """One run through the body of a stage.

    Attributes:
      owner: That of the record.
      stage: The stage.
      changes: What was written in it; complete once it is closed.
      is_open: Is it not closed yet? A thread or task may have closed what another one
        opened, as the body of an async generator does that goes on in another task.
    """

    owner: int
    stage: Stage
    changes: list[Change] = field(factory=list)
    is_open: bool = True


_active: ContextVar[tuple[Run, ...]] = ContextVar("staged_axes_active", default=())
runs = _active.get


def enter(owner: int, stage: Stage) -> Run:
    """Opens a stage of a record, in this thread or task."""
    run = Run(owner, stage)
    _active.set((*_active.get(), run))
    return run


def leave(stage: Stage, opened: Sequence[Run]) -> Run:
    """Closes the innermost run through a stage.

    Args:
      stage: The stage.
      opened: All runs of the record that are open, whoever opened them.

    Raises:
      RecordError: It is not open.
    """
    mine = [run for run in _active.get() if run in opened]
    candidates = [run for run in [*opened, *mine] if run.stage == stage]
    if not candidates:
        raise error(
            RecordError,
            f"stage {stage.name!r} is closed, but it is not open.",
            Problem(kind="stage", path=f"stage {stage.name!r}", there="not open"),
            fixes=[f"with spec.stage({stage.name!r}): ..."],
        )
    this = candidates[-1]
    this.is_open = False
    _active.set(tuple(run for run in _active.get() if run.is_open))
    return this


def innermost(owner: int) -> Run | None:
    """The innermost open run through a stage of a record."""
    mine = (x for x in reversed(_active.get()) if x.owner == owner and x.is_open)
    return next(mine, None)


class Opens(Protocol):
    """A record, as far as its stages know it."""

    def open(self, stage: Stage) -> Run:
        """Opens a stage."""

    def close(self, stage: Stage, *, failed: bool) -> None:
        """Closes a stage."""


@frozen
class StageBlock(AbstractContextManager[Run]):
    """The block of a stage: for `with`, or around the body of a function.

    It keeps nothing of its own, so it can be opened again, inside itself, and by
    several threads and tasks at once.
    """

    record: Opens
    stage: Stage

    def __enter__(self) -> Run:
        return self.record.open(self.stage)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        e: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.record.close(self.stage, failed=kind is not None)

    def __call__(self, fn: Function) -> Function:
        """The function, with its body in the stage.

        Raises:
          RecordError: It is no function, or a generator, whose body runs piecemeal.
        """
        piecemeal = inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn)
        if piecemeal or not callable(fn):
            what = "a generator function" if piecemeal else short(fn)
            raise error(
                RecordError,
                f"a stage goes around the body of a function, not of {what}.",
                Problem(kind="stage", path=f"stage {self.stage.name!r}", there=what),
                fixes=[f"with spec.stage({self.stage.name!r}): ... inside the body"],
            )

        @functools.wraps(fn)
        def staged(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fn(*args, **kwargs)

        @functools.wraps(fn)
        async def staged_async(*args: Any, **kwargs: Any) -> Any:
            with self:
                return await fn(*args, **kwargs)

        chosen: Any = staged_async if inspect.iscoroutinefunction(fn) else staged
        return chosen  # type: ignore[no-any-return]
