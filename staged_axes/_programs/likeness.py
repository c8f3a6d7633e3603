"""A treedef to compare others with: equal only for the very same static data.

Comparing two treedefs is the fastest thing that can be done with them, but Python takes
`1` for `True`, an object for one of another type where its `__eq__` says so, and a list
that was changed in place for what it was. So a treedef is kept with each piece of
static data replaced by an object that is equal to that piece alone: by identity, or by
content where it can change in place.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import jax.tree_util as jtu

from staged_axes._compat import node_class, node_data, treedef_nodes, treedef_with
from staged_axes._structure.content import Key, Uncomparable, content, parts_of


class Same:
    """Equal to one object, by identity."""

    __slots__ = ("_x",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, x: Any) -> None:
        self._x = x

    def __eq__(self, other: object) -> bool:
        return other is self._x


class SameParts:
    """Equal to a container of one type with the same parts."""

    __slots__ = ("_kind", "_open", "_parts")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, x: Any, opener: Callable[[Any], Iterable[Any]]) -> None:
        self._kind = type(x)
        self._open = opener
        self._parts = tuple(map(likeness_of, opener(x)))

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and self._parts == tuple(self._open(other))


class SameStructure:
    """Equal to a treedef with the very same static data."""

    __slots__ = ("_likeness",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, treedef: Any) -> None:
        self._likeness = likeness(treedef)

    def __eq__(self, other: object) -> bool:
        return type(other) is jtu.PyTreeDef and bool(self._likeness == other)


class SameContent:
    """Equal to whatever holds the same now."""

    __slots__ = ("_key",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, key: Key) -> None:
        self._key = key

    def __eq__(self, other: object) -> bool:
        try:
            return content(other)[0] == self._key
        except Uncomparable:
            return False


_OPENERS: dict[type, Callable[[Any], Iterable[Any]]] = {
    tuple: tuple,
    list: tuple,
    dict: lambda x: itertools.chain.from_iterable(x.items()),
}


def likeness(treedef: Any, again: Any = None) -> Any:
    """The treedef that equals this one, for as long as its static data is the same.

    Args:
      treedef: The treedef.
      again: That of the same value, flattened once more. It tells the tuples that a
        class makes at each flatten, which are plain ones for good, from tuples that
        are the user's own data, in whose place one of another class may come.

    Raises:
      Uncomparable: Static data that gives no key.
    """
    rows = treedef_nodes(treedef if again is None else again)
    others = map(node_data, rows)

    def of_row(row: tuple[Any, ...], data: Any) -> Any:
        return _likeness_of_row(row, data, next(others))

    return treedef_with(treedef, of_row)


def _likeness_of_row(row: tuple[Any, ...], data: Any, again: Any) -> Any:
    """What stands for the static data of one node."""
    if data is None:
        return None
    if type(data) is list and node_class(row) is None:
        # The keys of a dict. Equal strings are one key, whatever their types.
        plain = all(type(key) is str for key in data)
        return data if plain else [likeness_of(key) for key in data]
    if type(data) is tuple and (again is not data or not data):
        # Item by item in C: one comparison in Python for all of them takes longer.
        return tuple(map(likeness_of, data))
    return likeness_of(data)


def likeness_of(x: Any) -> Any:
    """What is equal to one piece of static data alone."""
    kind = type(x)
    if kind in _OPENERS:
        return SameParts(x, _OPENERS[kind])
    if kind is jtu.PyTreeDef:
        return SameStructure(x)
    key, is_stable = content(x)
    if is_stable:
        return Same(x)
    opener = parts_of(x)
    return SameParts(x, opener) if opener else SameContent(key)
