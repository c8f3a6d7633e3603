"""A call of a program that is at hand: of one model, and of many models in turn."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import cycle
from typing import Any

import staged_axes as sa
from benchmarks.measure import Stopwatch, repeated
from benchmarks.models import make, record, renamed, touch
from benchmarks.peers import PEERS, by_hand, flat, one_jit


def one(leaves: int) -> Mapping[str, Stopwatch]:
    """The same model again and again."""
    model = make(leaves)
    sides = {"staged_axes": record().batch(touch), "by hand": by_hand(touch, model)}
    sides["leaves"] = flat(touch, model)
    sides |= {name: batch(touch, model) for name, batch in PEERS.items()}
    return {name: repeated(partial(fn, model)) for name, fn in sides.items()}


def variants(leaves: int, count: int, compiled: int) -> Mapping[str, Stopwatch]:
    """Models that differ in the static data of every node, one after the other.

    By hand, each has its own program and whoever calls knows which: nothing is looked
    up. Large programs take long to compile; so other sides get fewer models, which, if
    anything, favours them.
    """
    model = make(leaves)
    models = [renamed(model, f"variant {i}") for i in range(count)]
    some = models[:compiled]
    fast = sa.batch(touch, (record(),), warn_after=None)
    return {
        "staged_axes": _in_turn(partial(fast, m) for m in models),
        "by hand": _in_turn(partial(by_hand(touch, m), m) for m in some),
        "one jit": _in_turn(partial(one_jit(touch), m) for m in some),
    }


def _in_turn(calls: Iterable[Callable[[], Any]]) -> Stopwatch:
    """Times one call, the next of these each time."""
    calls = list(calls)
    for call in calls:
        call()  # compiles
    return repeated((call() for call in cycle(calls)).__next__)
