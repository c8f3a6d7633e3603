"""The value that most benchmarks run on: a flax struct with static fields."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

import staged_axes as sa

BATCH = 8
_STEPS = 100
_SECONDS = 0.01


@struct.dataclass
class Body:
    """Two leaves, the first of which is mapped, and two static fields."""

    mass: jax.Array
    size: jax.Array
    name: str = struct.field(pytree_node=False)
    parent: int = struct.field(pytree_node=False)


@struct.dataclass
class Model:
    """Bodies, and how to compute with them."""

    bodies: tuple[Body, ...]
    solver: str = struct.field(pytree_node=False)


def make(leaves: int) -> Model:
    """A model with so many leaves, no two of them the same array."""
    return Model(
        tuple(
            Body(
                mass=jnp.linspace(1.0, 2.0, BATCH) + i,
                size=jnp.full(3, 1.0 + i),
                name=f"body {i}",
                parent=i - 1,
            )
            for i in range(leaves // 2)
        ),
        solver="newton",
    )


def renamed(model: Model, prefix: str) -> Model:
    """The same arrays in a model with other static data in every node."""
    bodies = (b.replace(name=f"{prefix} {b.name}") for b in model.bodies)
    return Model(tuple(bodies), solver=prefix)


def unseen(leaves: int) -> Iterator[Model]:
    """One model again and again, each time with another static value."""
    model = make(leaves)
    return (model.replace(solver=f"solver {i}") for i in count())


def record() -> sa.AxesBuilder:
    """Which leaves are mapped, said once for all models."""
    spec = sa.AxesBuilder(default=None)
    spec.bodies[:].mass = 0
    return spec


def concrete(model: Model) -> Model:
    """The same said by hand, as `jax.vmap` takes it: it serves this model alone."""
    bodies = (b.replace(mass=0, size=None) for b in model.bodies)
    return model.replace(bodies=tuple(bodies))


def touch(model: Model) -> jax.Array:
    """Takes every leaf and computes next to nothing: what is timed is the call."""
    leaves: list[Any] = jax.lax.optimization_barrier(jax.tree.leaves(model))
    return leaves[0]


def rollout(model: Model) -> Any:
    """Bodies on springs, a hundred steps: something to trace and compile."""
    mass = jnp.stack([b.mass for b in model.bodies])
    size = jnp.stack([b.size for b in model.bodies])

    def step(state: Any, _: None) -> Any:
        position, velocity = state
        force = -position * size - 0.1 * jnp.tanh(velocity)
        velocity = velocity + _SECONDS * force / mass[:, None]
        position = position + _SECONDS * velocity
        return (position, velocity), jnp.sum(mass[:, None] * velocity**2) / 2

    start = size, jnp.zeros_like(size)
    return jax.lax.scan(step, start, None, length=_STEPS)
