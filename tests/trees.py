"""Sample nodes of every kind, each with two children `x` and `y` and static data."""

import collections
import dataclasses
from typing import NamedTuple

import attrs
import jax
from flax import struct
from flax.core import FrozenDict


@struct.dataclass
class Struct:
    x: object
    y: object
    tag: str = struct.field(pytree_node=False, default="late")


class Named(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Data:
    x: object
    y: object
    tag: tuple = (1, 2.5, "late")


jax.tree_util.register_dataclass(Data, data_fields=["x", "y"], meta_fields=["tag"])


@attrs.define
class Attrs:
    x: object
    y: object
    tag: int = 3


jax.tree_util.register_pytree_with_keys(
    Attrs,
    lambda node: (
        [
            (jax.tree_util.GetAttrKey("x"), node.x),
            (jax.tree_util.GetAttrKey("y"), node.y),
        ],
        node.tag,
    ),
    lambda tag, children: Attrs(*children, tag),
)


class Keyless:
    """Registered without keys; refuses to be built with anything but its own parts."""

    def __init__(self, x, y):
        if isinstance(x, int) or isinstance(y, int):
            message = "no ints in here"
            raise TypeError(message)
        self.x, self.y = x, y


jax.tree_util.register_pytree_node(
    Keyless, lambda node: ((node.x, node.y), "aux"), lambda _, c: Keyless(*c)
)


def by_name(x, y):
    """A dict."""
    return {"x": x, "y": y}


# Each kind: how to make it, and what its children are called.
FIELDS, ITEMS, ROW = ("x", "y"), ("x", "y"), (0, 1)
NODES = {
    "dict": (by_name, ITEMS),
    "ordered": (lambda x, y: collections.OrderedDict(x=x, y=y), ITEMS),
    "frozen": (lambda x, y: FrozenDict(by_name(x, y)), ITEMS),
    "list": (lambda x, y: [x, y], ROW),
    "tuple": (lambda x, y: (x, y), ROW),
    "named": (Named, FIELDS),
    "struct": (Struct, FIELDS),
    "data": (Data, FIELDS),
    "attrs": (Attrs, FIELDS),
    "keyless": (Keyless, FIELDS),
}
