"""Functions and classes that can be imported by name, for test_json."""

import dataclasses
from typing import Generic, TypeVar

import jax

T = TypeVar("T")


def by_size(leaf):
    """A function for `per_leaf` and `from_node`."""
    return 0 if leaf.size > 1 else None


def is_kernel(path, leaf):
    """A predicate for a rule."""
    return path[-1] == "kernel"


@jax.jit
def jitted(leaf):
    """A function that something has been made of under its own name."""
    return leaf


number = 3


@dataclasses.dataclass
class Wheel:
    drag: float
    label: str = dataclasses.field(default="", metadata={"static": True})


@dataclasses.dataclass
class Model:
    wheel: Wheel
    mass: float

    @classmethod
    def by_class(cls, leaf):
        """A function that is an attribute of a class."""
        return 0

    def by_instance(self, leaf):
        """A function that belongs to no name."""
        return 0


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
