"""Sample classes of every kind of pytree, and how their children are reached."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.tree_util as jtu
from attrs import frozen
from flax import struct
from flax.core import FrozenDict

try:
    from flax import nnx
except ImportError:  # the flax of the oldest set wants a newer JAX for its nnx
    nnx = None


@struct.dataclass
class Wheel:
    radius: Any
    drag: Any
    label: Any = struct.field(pytree_node=False, default="front")


class Point(NamedTuple):
    x: Any
    y: Any


@frozen
class Motor:
    gear: Any
    limit: Any
    name: Any = "slide"


jtu.register_pytree_with_keys(
    Motor,
    lambda m: (
        [(jtu.GetAttrKey("gear"), m.gear), (jtu.GetAttrKey("limit"), m.limit)],
        m.name,
    ),
    lambda name, children: Motor(*children, name),
)


@dataclass
class Slot:
    seq: Any
    window: Any
    rate: Any = 30


jtu.register_dataclass(Slot, data_fields=["seq", "window"], meta_fields=["rate"])


class Box:
    """A class that gives JAX no keys for its children."""

    def __init__(self, a, b, unit="m"):
        self.a, self.b, self.unit = a, b, unit


jtu.register_pytree_node(
    Box, lambda b: ((b.a, b.b), b.unit), lambda unit, children: Box(*children, unit)
)


class Layer(eqx.Module):
    weight: Any
    bias: Any
    act: Any = eqx.field(static=True, default="relu")


def state(kernel, scale):
    """A state of nnx with two variables."""
    variables = {"kernel": nnx.Param(kernel), "scale": nnx.BatchStat(scale)}
    if jtu.all_leaves(variables.values()):  # an old release: their states are nodes
        variables = {name: x.to_state() for name, x in variables.items()}
    return nnx.State(variables)


class Strict:
    """A class that takes nothing but arrays."""

    def __init__(self, a, b):
        if not (hasattr(a, "shape") and hasattr(b, "shape")):
            message = "two arrays are needed"
            raise TypeError(message)
        self.a, self.b = a, b


class Eager:
    """A class that makes an array of whatever it is given."""

    def __init__(self, a, b):
        self.a, self.b = jax.numpy.asarray(a), jax.numpy.asarray(b)


class Fickle:
    """A class that puts its first child last if it is small."""

    def __init__(self, a, b):
        self.a, self.b = (b, a) if isinstance(a, int) else (a, b)


class Nested:
    """A class whose static data is the treedef of its own fields."""

    def __init__(self, a, b):
        self.a, self.b = a, b


for _cls in (Strict, Eager, Fickle):
    jtu.register_pytree_node(
        _cls, lambda o: ((o.a, o.b), None), lambda _, c, cls=_cls: cls(*c)
    )
jtu.register_pytree_node(
    Nested,
    lambda o: jtu.tree_flatten({"a": o.a, "b": o.b}),
    lambda treedef, leaves: Nested(**jtu.tree_unflatten(treedef, leaves)),
)


class Unhashable:
    """Static data that can be neither hashed nor compared."""

    __hash__ = None

    def __eq__(self, other):
        """Fail."""
        raise RuntimeError


@frozen
class Kind:
    """A kind of node: how it is built, and the words that lead to its children.

    Attributes:
      build: From the children to the node.
      words: For each child, the names and keys by which it is reached.
      is_flat: Are its children leaves?
    """

    build: Callable[..., Any]
    words: tuple[tuple[str | int, ...], ...]
    is_flat: bool = False


def place(spec, path):
    """The place in a builder: words that start with a dot are names, others keys."""
    for word in path:
        is_name = isinstance(word, str) and word.startswith(".")
        spec = getattr(spec, word[1:]) if is_name else spec[word]
    return spec


KINDS = {
    "dict": Kind(lambda a, b: {"p": a, "q": b}, (("p", ".p"), ("q", ".q"))),
    "int-keys": Kind(lambda a, b: {1: a, 7: b}, ((1,), (7,))),
    "frozen-dict": Kind(
        lambda a, b: FrozenDict({"p": a, "q": b}), (("p", ".p"), ("q", ".q"))
    ),
    "list": Kind(lambda a, b: [a, b], ((0, -2), (1, -1))),
    "tuple": Kind(lambda a, b: (a, b), ((0, -2), (1, -1))),
    "named-tuple": Kind(Point, ((".x", 0), (".y", 1))),
    "struct": Kind(partial(Wheel, label="rear"), ((".radius",), (".drag", "drag"))),
    "attrs": Kind(Motor, ((".gear",), (".limit",))),
    "dataclass": Kind(partial(Slot, rate=40), ((".seq",), (".window",))),
    "keyless": Kind(Box, ((".a", 0), (".b", 1))),
    "equinox": Kind(Layer, ((".weight",), (".bias",))),
}
if nnx:
    KINDS["nnx"] = Kind(state, ((".kernel", "kernel"), ("scale",)), is_flat=True)
