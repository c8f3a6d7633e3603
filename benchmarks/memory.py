"""What many static values leave behind, and what is copied of a large leaf."""

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import staged_axes as sa
from benchmarks.models import BATCH, Model, make, record, touch, unseen
from benchmarks.peers import Function, one_jit

_PROCESS = Path("/proc/self")
_ROW = 2**18  # float32 numbers in a MiB


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


def broadcast(mebibytes: int) -> Mapping[str, float]:
    """MiB that a batch of a model takes whose shared and mapped leaf are so large."""
    model = _large(mebibytes)
    body = model.bodies[0].replace(mass=np.ones((mebibytes, _ROW), np.float32))
    model = model.replace(bodies=(body,))
    bound = record().bind(make(leaves=2))
    return _against_copy(model, lambda: bound.broadcast(model, BATCH))


def vary(mebibytes: int) -> Mapping[str, float]:
    """MiB that putting in a batched array takes, beside so large a shared leaf."""
    model, spec = _large(mebibytes), record()
    masses = {"bodies[0].mass": jnp.ones(BATCH)}
    return _against_copy(model, lambda: spec.vary(model, masses))


def take(mebibytes: int) -> Mapping[str, float]:
    """MiB that one example out of a batch takes, with so large a shared leaf."""
    spec = record()
    many = spec.vary(_large(mebibytes), {"bodies[0].mass": jnp.ones(BATCH)})
    bound = spec.bind(many)
    return _against_copy(many, lambda: bound.take(many, 0))


def _large(mebibytes: int) -> Model:
    """One example of a model with so large a shared leaf, in this process's memory."""
    model = make(leaves=2)
    with jax.default_device(jax.devices("cpu")[0]):
        size = jnp.ones((mebibytes, _ROW)).block_until_ready()
    body = model.bodies[0].replace(mass=jnp.ones(()), size=size)
    return model.replace(bodies=(body,))


def _against_copy(model: Model, call: Callable[[], Any]) -> Mapping[str, float]:
    """MiB at the peak of a call, and at that of one copy of the shared leaf."""
    return {
        "staged_axes": _peak(call),
        "a copy": _peak(lambda: jnp.copy(model.bodies[0].size)),
    }


def _growth(call: Function, models: Iterator[Model], values: int) -> float:
    """KiB a value over the last nine tenths of the values."""
    first = values // 10
    for model in islice(models, first):
        call(model)
    before = _kibibytes("VmRSS")
    for model in islice(models, values - first):
        call(model)
    return (_kibibytes("VmRSS") - before) / (values - first)


def _peak(call: Callable[[], Any]) -> float:
    """MiB by which a call lifts the memory of this process at its highest."""
    before = _kibibytes("VmRSS")
    (_PROCESS / "clear_refs").write_text("5")  # the highest is the present one
    jax.block_until_ready(call())
    return (_kibibytes("VmHWM") - before) / 1024


def _kibibytes(name: str) -> int:
    """What Linux says of this process's memory."""
    gc.collect()
    status = (_PROCESS / "status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1])
