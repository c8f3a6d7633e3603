"""Whether a value contains itself, or is nested deeper than JAX can walk.

Where JAX gives up on a value, it does not leave the recursion that it entered (seen up
to 0.12.0), and from then on the thread can call next to nothing. So what is nested
deeper than values are is found out without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import jax.tree_util as jtu

DEEPEST = 500  # levels of nodes


def is_too_deep(value: Any) -> bool:
    """Does it contain itself, or is it nested too deep?"""
    # An attribute of a node need not be a child of it: then the slow way decides.
    return _goes_on(value, _attributes) and _goes_on(value, _children)


def _goes_on(value: Any, held: Callable[[Any], Iterable[Any]]) -> bool:
    """Are there nodes on more levels than allowed?"""
    level: Iterable[Any] = [value] if _is_of_node_type(value) else []
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for x in level:
            if isinstance(x, dict):
                inside += x.values()
            else:
                inside += x if isinstance(x, list | tuple) else held(x)
        one_of_each = {type(x): x for x in inside}
        kinds = {cls for cls, x in one_of_each.items() if _is_of_node_type(x)}
        if not kinds:
            return False
        level = {id(x): x for x in inside if type(x) in kinds}.values()
    return True


def _attributes(x: Any) -> Iterable[Any]:
    """What a node of a user's class holds in its attributes."""
    held = getattr(x, "__dict__", None)
    return _children(x) if held is None else held.values()


def _children(x: Any) -> Iterable[Any]:
    """The children of a node of a user's class."""
    return jtu.tree_leaves(x, is_leaf=lambda y: y is not x)


def _is_of_node_type(x: Any) -> bool:
    """Does JAX look inside objects of its class?"""
    cls = type(x)
    if cls not in _node_types:
        _node_types[cls] = x is not None and not jtu.all_leaves([x])
    return _node_types[cls]


_node_types: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
