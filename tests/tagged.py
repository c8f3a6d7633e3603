"""A node with static data, kinds of such data, and a count of what JAX compiles."""

import collections
import contextlib
import dataclasses
from typing import Any, NamedTuple

import jax

COMPILE = "/jax/core/compile/backend_compile_duration"

_events: list[str] = []
# For good: up to JAX 0.7 there is no public way to take a listener back.
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: _events.append(event)
)


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class Tagged:
    """Two leaves, the second one often None, and static data."""

    x: Any
    s: Any = None
    w: Any = None

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("x"), self.x), (key("w"), self.w)), self.s

    @classmethod
    def tree_unflatten(cls, s, children):
        x, w = children
        return cls(x, s, w)


class Items(list):
    """A list by another name."""


class Row(tuple):
    """A tuple by another name."""

    __slots__ = ()


class Single(NamedTuple):
    """A tuple with a name for its item."""

    a: Any


@dataclasses.dataclass
class Setting:
    """It has an `__eq__`, so no hash: it is told by what it holds."""

    gain: Any


@contextlib.contextmanager
def compiles():
    """Counts what JAX compiles meanwhile, whoever asks: `c.total()` afterwards."""
    before = len(_events)
    count = collections.Counter()
    yield count
    count.update(event for event in _events[before:] if event == COMPILE)
