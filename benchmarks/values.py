"""How much of a large field is copied when values are put together or taken apart."""

import resource
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import staged_axes as sa

_BATCH = 8


def copied(act: str, mib: int) -> Mapping[str, float]:
    """MiB by which the process grows at its peak, for a field of so many MiB.

    Args:
      act: `"vary"` and `"take"` share a JAX array; `"broadcast"` shares a JAX array and
        maps a NumPy array, each of this size.
      mib: The size of the field.
    """
    spec = sa.AxesBuilder(default=None)
    spec.mass = 0
    shared = jnp.ones((mib, 2**18), jnp.float32).block_until_ready()
    one = {"mass": np.ones(3, np.float32), "terrain": shared}
    masses = np.ones((_BATCH, 3), np.float32)
    many = {"mass": masses, "terrain": shared}
    bound = spec.bind(many)
    if act == "broadcast":
        one["mass"] = np.ones((mib, 2**18), np.float32)
    before = _peak()
    result: Any = {
        "vary": lambda: spec.vary(one, {"mass": masses}),
        "take": lambda: bound.take(many, 0),
        "broadcast": lambda: bound.broadcast(one, _BATCH),
    }[act]()
    jax.block_until_ready(result)
    assert result["terrain"] is shared
    return {"staged_axes": _peak() - before}


def _peak() -> float:
    """MiB of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
