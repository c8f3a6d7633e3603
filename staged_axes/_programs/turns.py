"""One trace for a key at a time, by whichever thread comes first.

No lock is held while a function of the user's is traced: it may start a thread that
calls another batched function, and wait for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from staged_axes._structure.content import Key


class Turns:
    """Lets threads that want the same key go one after the other."""

    def __init__(self) -> None:
        self._busy: dict[Key, threading.Event] = {}
        self._lock = threading.Lock()

    @contextmanager
    def take(self, key: Key) -> Iterator[None]:
        """Waits until no other thread has the key, and has it.

        A thread that has a turn already waits for nobody: two that wait for each other
        would wait for ever. It goes ahead, and does what another one is doing too.
        """
        mine = threading.Event()
        depth = getattr(_own, "depth", 0)
        while (other := self._claim(key, mine)) is not mine and depth == 0:
            other.wait()
        _own.depth = depth + 1
        try:
            yield
        finally:
            _own.depth = depth
            if other is mine:
                with self._lock:
                    del self._busy[key]
                mine.set()

    def _claim(self, key: Key, mine: threading.Event) -> threading.Event:
        """Who has the key now: the one who asks, if nobody had it."""
        with self._lock:
            return self._busy.setdefault(key, mine)


_own = threading.local()
