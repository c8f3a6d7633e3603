"""The first call of a function, and the first call with other static data."""

import functools
from collections.abc import Callable, Mapping

import jax

import staged_axes as sa
from benchmarks.measure import Stopwatch, once
from benchmarks.models import Model, make, record, rollout, touch, unseen
from benchmarks.peers import PEERS, Function, by_hand

_COMPILED = "/jax/core/compile/backend_compile_duration"


def first(leaves: int) -> Mapping[str, Stopwatch]:
    """A function that nobody has seen: traced and compiled."""
    model, spec = make(leaves), record()

    def side(batch: Callable[[Function, Model], Function]) -> Stopwatch:
        return once(_new_function, lambda fn: batch(fn, model)(model))

    sides = {"staged_axes": lambda fn, _: spec.batch(fn), "by hand": by_hand, **PEERS}
    return {name: side(batch) for name, batch in sides.items()}


def new_static(leaves: int) -> Mapping[str, Stopwatch]:
    """A static value that is new, and that the function does not read."""
    models = unseen(leaves)
    fast = sa.batch(rollout, (record(),), warn_after=None)
    return {
        "staged_axes": once(models.__next__, fast),
        "by hand": once(models.__next__, lambda model: by_hand(rollout, model)(model)),
    }


def compiles(values: int) -> Mapping[str, float]:
    """How often XLA compiles for so many static values that are not read."""
    models = unseen(leaves=2)
    fast = sa.batch(touch, (record(),), warn_after=None)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if event == _COMPILED else None
    )

    def during(call: Function) -> int:
        before = len(compiled)
        for _ in range(values):
            call(next(models))
        return len(compiled) - before

    return {
        "staged_axes": during(fast),
        "by hand": during(lambda model: by_hand(touch, model)(model)),
    }


def _new_function() -> Function:
    """A function that has its own identity."""
    return functools.partial(rollout)
