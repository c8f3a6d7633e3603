"""Whether a value contains itself, or is nested deeper than JAX can walk.

Where JAX gives up on a value, it does not leave the recursion that it entered (seen up
to 0.12.0), and from then on the thread can call next to nothing. So what is nested
deeper than values are is found out without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import jax.tree_util as jtu

DEEPEST = 500  # levels of nodes


_Opener: TypeAlias = Callable[[Any], Iterable[Any]]


def is_too_deep(value: Any) -> bool:
    """Does it contain itself, or is it nested too deep?"""
    # An attribute of a node need not be a child of it: then the slow way decides.
    return _goes_on(value, _attributes) and _goes_on(value, _children)


def _goes_on(value: Any, held: _Opener) -> bool:
    """Are there nodes on more levels than allowed?"""
    level = [value]
    for _ in range(DEEPEST + 1):
        opened = {
            cls: _opener(cls, held)
            for cls in set(map(type, level))
            if _is_node_type(cls, level)
        }
        if not opened:
            return False
        nodes = {id(x): x for x in level if type(x) in opened}.values()
        level = [y for x in nodes for y in opened[type(x)](x)]
    return True


def _opener(cls: type, held: _Opener) -> _Opener:
    """What gives the children of nodes of a class, and perhaps more than those."""
    if issubclass(cls, dict):
        return dict.values
    return iter if issubclass(cls, list | tuple) else held


def _attributes(x: Any) -> Iterable[Any]:
    """What a node of a user's class holds in its attributes."""
    held = getattr(x, "__dict__", None)
    return _children(x) if held is None else held.values()


def _children(x: Any) -> Iterable[Any]:
    """The children of a node of a user's class."""
    return jtu.tree_leaves(x, is_leaf=lambda y: y is not x)


def _is_node_type(cls: type, level: list[Any]) -> bool:
    """Does JAX look inside objects of a class, of which some are on a level?"""
    if cls not in _node_types:
        one = next(x for x in level if type(x) is cls)
        _node_types[cls] = one is not None and not jtu.all_leaves([one])
    return _node_types[cls]


_node_types: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
