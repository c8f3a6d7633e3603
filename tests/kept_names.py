"""What the records in tests/data name: none of it may be renamed or moved."""

from typing import Any

from flax import struct


@struct.dataclass
class Robot:
    """A value of every kind that a record can speak of."""

    arm: Any
    spare: Any
    wheels: Any
    net: Any
    order: Any
    extra: Any
    label: str = struct.field(pytree_node=False, default="")


def by_size(leaf):
    """For `per_leaf`: large leaves are mapped."""
    return 0 if leaf.ndim > 1 else None


def by_count(node):
    """For `from_node`: several wheels are mapped."""
    return 0 if len(node) > 1 else None


def is_scale(path, leaf):
    """For a rule."""
    return "scale" in str(path[-1])
