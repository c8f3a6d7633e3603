"""What can be changed in place, and what a program keeps of it.

A traced function keeps what it was given: in a callback, in a rule for derivatives, in
its output. It must be given the user's own objects, since some only equal themselves;
and a later change of one would reach a program that is kept for the old content. So a
program keeps a `Premise`, to be asked before any of that counts. What an output holds
is copied, each time, as far as it is plain data.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import numpy as np
from attrs import define, field, frozen

from staged_axes._compat import treedef_with
from staged_axes._structure.content import (
    Key,
    Uncomparable,
    content,
    is_mapping,
    is_sequence,
    is_set,
)


@define
class Snapshot:
    """Copies of plain containers and arrays, at any depth; all else is kept.

    One object has one copy, wherever it is met: what was the same object stays so.

    Attributes:
      is_whole: Is nothing left that can change? Objects that are no plain containers
        are not copied, as some only equal themselves.

    Example:
      >>> import numpy as np
      >>> now = Snapshot()
      >>> x = {"gains": [np.ones(2)]}, "text", print
      >>> y = now.of(x)
      >>> y[0]["gains"][0] is x[0]["gains"][0], y[2] is print, now.of(x) is y
      (False, True, True)
    """

    # With each copy its original, so that no other object gets its id.
    _made: dict[int, tuple[Any, Any]] = field(factory=dict)
    is_whole: bool = field(default=True, init=False)

    def treedef(self, treedef: Any) -> Any:
        """The same treedef, whose static data nobody else can change."""
        return treedef_with(treedef, lambda _, data: self.of(data))

    def of(self, x: Any) -> Any:
        """`x` as it is now."""
        if id(x) not in self._made:
            self._made[id(x)] = x, self._copy(x)
        return self._made[id(x)][1]

    def _copy(self, x: Any) -> Any:
        if type(x) is np.ndarray:
            new = x.copy()
            if x.dtype == object:
                for at in np.ndindex(x.shape):
                    new[at] = self.of(x[at])
            return new
        if type(x) is types.MappingProxyType:
            return types.MappingProxyType(self.of(dict(x)))
        if is_sequence(x):
            return self._sequence(x)
        if is_mapping(x):
            new = copy.copy(x)
            for key, held in x.items():
                new[key] = self.of(held)
            return new
        if isinstance(x, bytearray) or (is_set(x) and not isinstance(x, frozenset)):
            return copy.copy(x)
        self.is_whole &= not can_change(x)
        return x

    def _sequence(self, x: Any) -> Any:
        """A copy of a list or deque; of a tuple where something in it can change."""
        items = [self.of(item) for item in x]
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


@frozen
class Premise:
    """Static data that a function was traced with, and what it held then.

    Attributes:
      data: The data, as it is now.
      key: Its content when the function was traced.
    """

    data: Any
    key: Key

    @classmethod
    def of(cls, data: Any) -> Premise | None:
        """That of a trace which begins now; None for what cannot change, or be told."""
        try:
            key, is_stable = content(data)
        except Uncomparable:
            return None
        return None if is_stable else cls(data, key)

    def holds(self) -> bool:
        """Is everything still what it was?"""
        try:
            return content(self.data)[0] == self.key
        except Uncomparable:
            return False


def can_change(x: Any) -> bool:
    """Can this static data, or treedef, change in place, as far as can be told?"""
    try:
        return not content(x)[1]
    except Uncomparable:
        return False
