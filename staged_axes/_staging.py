"""Which stage is open: what is written in a thread or a task is written by that one."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeVar

from attrs import frozen

from staged_axes._decisions import Stage
from staged_axes._display import short
from staged_axes.errors import Problem, RecordError, error

_open: ContextVar[tuple[tuple[int, Stage], ...]] = ContextVar(
    "staged_axes_open", default=()
)
Function = TypeVar("Function", bound=Callable[..., Any])


def push(record: int, stage: Stage) -> None:
    """Opens a stage of a record."""
    _open.set((*_open.get(), (record, stage)))


def pop(record: int, stage: Stage) -> Stage:
    """Closes the innermost open stage that equals `stage`, and returns it."""
    opened = _open.get()
    last = max(i for i, one in enumerate(opened) if one == (record, stage))
    _open.set(opened[:last] + opened[last + 1 :])
    return opened[last][1]


def innermost(record: int) -> Stage | None:
    """The innermost open stage of a record."""
    return next((stage for r, stage in reversed(_open.get()) if r == record), None)


class Opens(Protocol):
    """A record, as far as stages know it."""

    def open(self, stage: Stage) -> Stage:
        """Opens a stage."""

    def close(self, stage: Stage, *, failed: bool) -> None:
        """Closes a stage."""


@frozen
class Staging(AbstractContextManager[Stage]):
    """A stage to be opened: by `with`, and around the body of a function.

    It keeps nothing of its own, so it can be opened again, inside itself, and by
    several threads and tasks at once.
    """

    record: Opens
    stage: Stage

    def __enter__(self) -> Stage:
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
