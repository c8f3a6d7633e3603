"""What many static values leave behind, and what is copied of a large field."""

import gc
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import staged_axes as sa
from benchmarks.models import Model, make, record, touch, unseen
from benchmarks.peers import Function, one_jit

_PROCESS = Path("/proc/self")


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
    """MiB that making a batch takes, of a model whose shared field is so large."""
    bound = record().bind(make(leaves=2))
    model = _large(mebibytes)
    return {
        "staged_axes": _peak(lambda: bound.broadcast(model, 2)),
        "a copy": _peak(lambda: jnp.copy(model.bodies[0].size)),
    }


def vary(mebibytes: int) -> Mapping[str, float]:
    """MiB that putting in a batched array takes, beside so large a shared field."""
    spec, model = sa.AxesBuilder(default=None), _large(mebibytes)
    masses = {"bodies[0].mass": jnp.ones(2)}
    return {
        "staged_axes": _peak(lambda: spec.vary(model, masses)),
        "a copy": _peak(lambda: jnp.copy(model.bodies[0].size)),
    }


def _large(mebibytes: int) -> Model:
    """One example of a model, in this process's memory."""
    model = make(leaves=2)
    with jax.default_device(jax.devices("cpu")[0]):
        size = jnp.ones((mebibytes, 2**18)).block_until_ready()
    body = model.bodies[0].replace(mass=jnp.ones(()), size=size)
    return model.replace(bodies=(body,))


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
