"""What is kept after many static values."""

import gc
import resource
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import staged_axes as sa
from benchmarks.models import Model, record, touch, unseen
from benchmarks.peers import Function, one_jit


def structures(values: int) -> Mapping[str, float]:
    """How many structures are held after so many static values."""
    fast = sa.batch(touch, (record(),), warn_after=None)
    for model in islice(unseen(leaves=2), values):
        fast(model)
    return {"staged_axes": fast.cache_info().structures}


def growth(values: int, by_hand_values: int) -> Mapping[str, float]:
    """KiB that the process grows by with each static value, once the cache is full.

    JAX compiles for each value and keeps it all, so fewer of them are enough.
    """
    models = unseen(leaves=2)
    fast = sa.batch(touch, (record(),), warn_after=None)
    return {
        "staged_axes": _growth(fast, models, values),
        "by hand": _growth(one_jit(touch), models, by_hand_values),
    }


def _growth(call: Function, models: Iterator[Model], values: int) -> float:
    """KiB a value over the last nine tenths of the values."""
    first = values // 10
    for model in islice(models, first):
        call(model)
    before = _resident()
    for model in islice(models, values - first):
        call(model)
    return (_resident() - before) / (values - first)


def _resident() -> float:
    """KiB of memory that this process has now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024
