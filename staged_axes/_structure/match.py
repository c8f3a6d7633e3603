"""Which children of a node a step means, and which nodes a path."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jax.tree_util as jtu
from attrs import frozen

from staged_axes._structure.tree import Children, attributes, children
from staged_axes._words.paths import Index, Name, Path, Span, Step

_ABSENT = object()


def match(node: Any, below: Children, step: Step) -> list[int]:
    """The positions of the children that a step means.

    A field and an item of one name are one place; a tuple's fields are reached by
    index too; a child without a key is reached by the attribute that holds it.
    """
    if isinstance(step, Span):
        every = range(len(below))
        if step.is_all:
            return list(every)
        in_reach = every if _is_row(node, below) else []
        return list(in_reach[step.start : step.stop : step.step])
    same = below.at(step)
    if same:
        return same
    if isinstance(step, Index):
        i = step.index + len(below) if step.index < 0 else step.index
        return [i] if _is_row(node, below) and 0 <= i < len(below) else []
    if isinstance(step, Name) and not below.is_named:
        return _by_attribute(node, below, step.name)
    return []


def _is_row(node: Any, below: Children) -> bool:
    """Are the children reached by position? Those of a dict with int keys are not."""
    return isinstance(node, tuple) or (
        not isinstance(node, Mapping) and below.are_indexed
    )


def _by_attribute(node: Any, below: Children, name: str) -> list[int]:
    """The position of the child that an attribute of a keyless node holds."""
    try:
        held = getattr(node, name, _ABSENT)
        same = [i for i, x in enumerate(below.values) if x is held]
        if len(same) <= 1 or held is None:
            return same
        # One object is several children, as small numbers may be. JAX's own way to
        # tell them apart: the same node with marks for children.
        treedef: Any = jtu.tree_structure(node, is_leaf=lambda x: x is not node)
        marks = [object() for _ in below.values]
        marked = getattr(treedef.unflatten(marks), name)
        return [i for i in same if marks[i] is marked]
    except Exception:  # the user's class may raise anything
        return []


def held_children(node: Any, below: Children) -> dict[str, Any]:
    """The attributes that hold children of a node, by name."""
    return {
        name: x
        for name, x in attributes(node).items()
        if any(x is child for child in below.values)
    }


@frozen(slots=False, eq=False)
class Located:
    """A node of a value, and where its leaves are among those of the value.

    Attributes:
      node: The node.
      treedef: Its treedef.
      start: The number of its first leaf.
    """

    node: Any
    treedef: Any
    start: int = 0

    @property
    def numbers(self) -> range:
        """The numbers of its leaves."""
        return range(self.start, self.start + self.treedef.num_leaves)

    def at(self, path: Path) -> list[Located]:
        """The nodes at a path: none, one, or several where it has a slice."""
        found = [self]
        for step in path:
            found = [x._inside[i] for x in found for i in match(x.node, x._below, step)]
        return found

    @cached_property
    def _below(self) -> Children:
        return children(self.node)

    @cached_property
    def _inside(self) -> list[Located]:
        """The children, located."""
        defs = self.treedef.children()
        sizes = (treedef.num_leaves for treedef in defs)
        starts = itertools.accumulate(sizes, initial=self.start)
        return list(map(Located, self._below.values, defs, starts))
