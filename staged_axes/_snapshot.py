"""Static data as it is now: copies of what can be changed in place.

A traced function keeps what it was given: an array that it used as a constant, a list
that it put into its output. Were that the user's own, a later change would reach a
program that is kept for the old content. So what counts by its content (`_content`) is
copied, and an object that is asked by its own `__eq__` stays what it is.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import jax.tree_util as jtu
import numpy as np

from staged_axes import _tree
from staged_axes._compat import node_class, node_data, treedef_nodes, treedef_with
from staged_axes._content import is_mapping, is_sequence, is_set


def snapshot(treedef: Any) -> Any:
    """The same treedef, whose static data nobody else can change."""
    return treedef_with(treedef, lambda _, data: copied(data))


def can_change(treedef: Any) -> bool:
    """Is there static data in it that can be changed in place?"""
    # JAX's own nodes hold none: the keys of a dict are a list that it has just made.
    data = [node_data(r) for r in treedef_nodes(treedef) if node_class(r) is not None]
    return any(copied(x) is not x for x in data)


def copied(x: Any) -> Any:  # noqa: PLR0911 (one return for each kind)
    """A copy of what counts by its content, at any depth; else `x` itself.

    Example:
      >>> import numpy as np
      >>> x = {"gains": [np.ones(2)]}, "text", print
      >>> y = copied(x)
      >>> y[0]["gains"][0] is x[0]["gains"][0], y[2] is print, copied("text") is x[1]
      (False, True, True)
    """
    if type(x) is np.ndarray:
        new = x.copy()
        if x.dtype == object:
            for at in np.ndindex(x.shape):
                new[at] = copied(x[at])
        return new
    if type(x) is types.MappingProxyType:
        return types.MappingProxyType(copied(dict(x)))
    if is_sequence(x):
        return _sequence(x)
    if is_mapping(x):
        new = copy.copy(x)
        for key, held in x.items():
            new[key] = copied(held)
        return new
    if is_set(x):
        return x if isinstance(x, frozenset) else copy.copy(x)
    if _is_hashable(x):
        return x
    if _tree.is_node(x):
        leaves, treedef = jtu.tree_flatten(x)
        return snapshot(treedef).unflatten(map(copied, leaves))
    if _tree.declares_fields(type(x)):
        new = copy.copy(x)
        for name, held in _tree.attributes(x).items():
            object.__setattr__(new, name, copied(held))
        return new
    return x


def _sequence(x: Any) -> Any:
    """A copy of a list or deque; of a tuple where something in it can change."""
    items = list(map(copied, x))
    if not isinstance(x, tuple):
        new = copy.copy(x)
        for i, item in enumerate(items):
            new[i] = item
        return new
    if all(a is b for a, b in zip(items, x, strict=True)):
        return x
    new = tuple.__new__(type(x), items)
    if hasattr(x, "__dict__"):
        vars(new).update(vars(x))
    return new


def _is_hashable(x: Any) -> bool:
    """Is it asked by its own `__eq__` and `__hash__`?"""
    try:
        hash(x)
    except Exception:  # as the user's own `__hash__` likes
        return False
    return True
