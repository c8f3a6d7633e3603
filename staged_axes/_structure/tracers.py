"""Tracers that are held where none may be: in static data."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import jax
import numpy as np

from staged_axes._compat import node_class, node_data, treedef_nodes
from staged_axes._structure import tree as _tree
from staged_axes._words.paths import Path


def traced_statics(value: Any, treedef: Any) -> list[tuple[Path, str]]:
    """Path and name of each static field that holds a tracer.

    Such a tracer comes from a transformation that may have ended; JAX would fail far
    from the cause, or serve a program that knows it.
    """
    data = [node_data(row) for row in treedef_nodes(treedef) if node_class(row)]
    # Most are tuples of fields: those of all nodes are looked at in one go.
    each = (x if type(x) is tuple else (x,) for x in data)
    if not holds_tracer([*itertools.chain.from_iterable(each)]):
        return []
    return [
        (path, name)
        for path, node, below in _tree.nodes(value)
        for name, x in _tree.statics(node, below).items()
        if holds_tracer(x)
    ]


def holds_tracer(x: Any, depth: int = 2) -> bool:
    """Is a tracer in it: in its containers, or in an object of the user's among those?

    A class may wrap its static data in an object of its own, as equinox does. Static
    data is no pytree (a dict in it may have keys that do not sort): it is walked here.
    """
    stack, seen = [(x, depth)], set()
    while stack:
        x, depth = stack.pop()
        if isinstance(x, jax.core.Tracer):
            return True
        if type(x) in _PLAIN or id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Mapping):
            stack += [(y, depth) for y in x.values()]
        elif isinstance(x, tuple | list | set | frozenset):
            if not _PLAIN.issuperset(map(type, x)):
                stack += [(y, depth) for y in x]
        elif depth > 0:
            stack += [(y, depth - 1) for y in _held(x)]
    return False


def _held(x: Any) -> list[Any]:
    """What an opaque object has in its attributes; nothing for data and functions."""
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, jax.Array | np.ndarray | np.generic | FunctionType | type):
        return []
    slots = [n for cls in type(x).__mro__ for n in getattr(cls, "__slots__", ())]
    named = [getattr(x, n) for n in slots if isinstance(n, str) and hasattr(x, n)]
    return [*named, *getattr(x, "__dict__", {}).values()]


_PLAIN = {type(None), str, bytes, bool, int, float, complex, np.ndarray}
