"""Static data as it is now: copies of what can be changed in place.

A traced function keeps what it was given: an array that it used as a constant, a list
that it put into its output. Were that the user's own, a later change would reach a
program that is kept for the old content. Objects of other classes stay what they are,
since some are compared by identity.
"""

from __future__ import annotations

import collections
import copy
import types
from typing import Any

import numpy as np

from staged_axes import _tree
from staged_axes._compat import node_class, node_data, treedef_nodes, treedef_with

_ROWS = (list, collections.deque)
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict)


def snapshot(treedef: Any) -> Any:
    """The same treedef, whose static data nobody else can change."""
    return treedef_with(treedef, lambda _, data: copied(data))


def can_change(treedef: Any) -> bool:
    """Is there static data in it that can be changed in place?"""
    # JAX's own nodes hold none: the keys of a dict are a list that it has just made.
    data = [node_data(r) for r in treedef_nodes(treedef) if node_class(r) is not None]
    return any(copied(x) is not x for x in data)


def copied(x: Any) -> Any:  # noqa: PLR0911 (one return for each kind)
    """A copy of plain containers and NumPy arrays at any depth; else `x` itself.

    An object that cannot be hashed but declares its fields counts as a container.
    """
    kind = type(x)
    if kind is np.ndarray:
        return x.copy()
    if kind in _ROWS:
        return kind(map(copied, x))
    if kind is set:
        return set(x)
    if kind in _MAPPINGS:
        new = copy.copy(x)
        new.update({key: copied(held) for key, held in x.items()})
        return new
    if kind is types.MappingProxyType:
        return kind(copied(dict(x)))
    if isinstance(x, tuple):
        items = tuple(map(copied, x))
        if all(a is b for a, b in zip(items, x, strict=True)):
            return x
        return kind(*items) if hasattr(kind, "_fields") else items
    if kind.__hash__ is None and _tree.declares_fields(kind):
        new = copy.copy(x)
        for name, held in _tree.attributes(x).items():
            object.__setattr__(new, name, copied(held))
        return new
    return x
