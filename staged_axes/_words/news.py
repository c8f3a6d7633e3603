"""Who is told when something happens, and is never allowed to do harm."""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from staged_axes._words import provenance as _provenance


@frozen(kw_only=True)
class Bound:
    """A value was bound.

    Attributes:
      axes: The `BoundAxes`.
      seconds: How long it took.
    """

    axes: Any
    seconds: float


@frozen(kw_only=True)
class Compiled:
    """A program was compiled, at a call of a batched function.

    Attributes:
      function: The name of the function.
      programs: How many programs it has now; more than 1 means that it was compiled
        again.
      seconds: How long tracing and compiling took.
      why: The fields that made this program differ from those at hand, in short.
    """

    function: str
    programs: int
    seconds: float
    why: str = ""


@define(eq=False)
class Guarded:
    """A callable of the user's whose errors harm nobody: the first is a warning."""

    fn: Callable[[Any], object]
    _failed: bool = field(default=False, init=False)

    def __call__(self, news: Any) -> None:
        """Tells the user's callable."""
        try:
            self.fn(news)
        except Exception as e:  # the user's own code may raise anything
            if not self._failed:
                self._failed = True
                _report(self.fn, e)


def error_text(e: BaseException) -> str:
    """Type and message of an exception, on one line."""
    return " ".join(traceback.format_exception_only(e)[0].split())


def _report(fn: Callable[[Any], object], e: Exception) -> None:
    """Warns that a callable raised, at the line that the user called us from."""
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    last = traceback.extract_tb(e.__traceback__)[-1]
    where = _provenance.Source(last.filename, last.lineno or 0)
    source = _provenance.caller()
    warnings.warn_explicit(
        f"the hook {name} raised at {where}: {error_text(e)}\n"
        "What called it goes on; further errors of this hook are not reported.",
        RuntimeWarning,
        source.file,
        source.line,
    )


@define(eq=False)
class Listeners:
    """Callables that are told the news, in the order in which they came.

    They must not raise: what the user gives is `Guarded` first.
    """

    _all: tuple[Callable[[Any], None], ...] = field(default=(), init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __bool__(self) -> bool:
        return bool(self._all)

    def add(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Tells the listener from now on.

        Returns:
          A function that stops it; calling it again does nothing.
        """
        with self._lock:
            self._all = (*self._all, listener)

        def stop() -> None:
            with self._lock:
                self._all = tuple(x for x in self._all if x is not listener)

        return stop

    def tell(self, news: Any) -> None:
        """Tells every listener."""
        for listener in self._all:
            listener(news)
