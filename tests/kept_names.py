"""What tests/data/record_v1.json names: none of it may be renamed or moved."""

import dataclasses
from typing import Any

import jax


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Robot:
    """A value of every kind that a record can speak of."""

    arm: Any
    spare: Any
    wheels: Any
    net: Any
    order: Any
    extra: Any
    label: str = dataclasses.field(default="", metadata={"static": True})


def by_size(leaf):
    """For `per_leaf`: large leaves are mapped."""
    return 0 if leaf.ndim > 1 else None


def by_count(node):
    """For `from_node`: several wheels are mapped."""
    return 0 if len(node) > 1 else None


def is_scale(path, leaf):
    """For a rule."""
    return "scale" in str(path[-1])
