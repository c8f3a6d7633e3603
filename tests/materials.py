"""What random calls are made of, with static data that Python takes for equal."""

import dataclasses
import enum
from collections import OrderedDict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tagged import Items, Row, Setting, Single


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class Model:
    """A node with a mapped leaf, another leaf, a subtree, and static data."""

    x: Any
    w: Any
    more: Any
    s: Any

    def tree_flatten_with_keys(self):
        keys = map(jax.tree_util.GetAttrKey, ("x", "w", "more"))
        return tuple((key, getattr(self, key.name)) for key in keys), self.s

    @classmethod
    def tree_unflatten(cls, s, children):
        return cls(*children, s)


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    gain: Any


@dataclasses.dataclass
class Forgetful:
    """Its `__eq__` forgets what it holds."""

    gain: Any

    def __eq__(self, other):
        return isinstance(other, Forgetful)

    def __hash__(self):
        return 0


def double(x):
    """Twice."""
    return x * 2


def triple(x):
    """Three times."""
    return x * 3


# Families in which much is equal for Python, and no two are the same.
STATICS = [
    [1, 1.0, True, 1 + 0j, Level.HIGH, np.float64(1), np.float32(1), np.int32(1)],
    [0, 0.0, -0.0, False, Level.LOW, None, "", np.bool_(False), complex(0, -0.0)],
    [(1,), (1.0,), (True,), [1], [1.0], {1}, {1.0}, frozenset({1}), range(1)],
    [(1,), Single(1), Row((1,)), [1], Items([1])],
    [([1],), Single([1]), Row([[1]]), Row([Items([1])])],
    [{"a": 0.0}, {"a": -0.0}, {"a": 0}, OrderedDict(a=0), {"b": 0}, {0: 0}, {False: 0}],
    [([1], {"k": [2]}), ([1], {"k": (2,)}), [[1], {"k": [2]}], ((1.0,), {"k": [2]})],
    [np.array([1, 2]), np.array([1.0, 2]), np.array([[1, 2]]), np.array([1, 2], "i1")],
    [Frozen(1), Frozen(1.0), Frozen((True,)), Setting(1), Setting(1.0), Setting([1])],
    [Setting(np.arange(2)), Setting([np.arange(2)]), Setting((0, 1)), Setting([0, 1])],
    [Forgetful(1), Forgetful(2), Forgetful(True), float("nan"), double, triple],
    ["double", np.str_("double"), b"double", ("double",), double, [double]],
]
LEAVES = [
    [2, 2.0, True, np.float32(2), np.int8(2), np.array(2), np.array(2.0), jnp.int32(2)],
    ["two", "three", double, triple, Setting(2), Setting(3), Frozen(2), 2.0, None],
    [np.array([2, 3]), np.array([2, 3], "f4"), jnp.array([2, 3]), 0.0, -0.0],
]
SUBTREES = [
    [None, (), [], {}, (2.0,), [2.0], Single(2.0), (2,), (None,)],
    [{1: 2.0}, {True: 2.0}, {1.0: 2.0}, {"1": 2.0}, OrderedDict({1: 2.0}), {1: "2"}],
]
SHAPES = [(2,), (3,), (2, 2), (2, 3)]
BATCHES = [
    lambda shape: np.ones(shape, np.float32),
    lambda shape: np.full(shape, 2.0),
    lambda shape: jnp.asarray(np.full(shape, 5, np.float32)),
    lambda shape: jnp.broadcast_to(jnp.asarray(3.0), shape),  # of weak type
    lambda shape: np.arange(np.prod(shape), dtype=np.int32).reshape(shape),
    lambda shape: np.full(shape, 2, jnp.bfloat16),
    lambda shape: np.full(shape, 3, np.int8),
    lambda shape: np.ones(shape, bool),
]


def mutate(x):
    """Changes in place what can be changed, at any depth."""
    if isinstance(x, list):
        x.append(1)
    elif isinstance(x, dict):
        x.update({key: (held,) for key, held in x.items()})
    elif isinstance(x, set):
        x.add(len(x) + 1)
    elif isinstance(x, np.ndarray):
        x += 1
    elif isinstance(x, Setting):
        mutate(x.gain)
        x.gain = (x.gain,)
    elif isinstance(x, tuple):
        for part in x:
            mutate(part)
