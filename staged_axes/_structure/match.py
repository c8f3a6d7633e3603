"""Which children of a node a step means, and which nodes a path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.tree_util as jtu

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
        not isinstance(node, Mapping)
        and all(isinstance(step, Index) for step in below.steps)
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


def locate(path: Path, value: Any, treedef: Any) -> list[tuple[Any, range]]:
    """The nodes at a path, each with the numbers of its leaves."""
    found = [(value, treedef, 0)]
    for step in path:
        inner = []
        for node, node_def, start in found:
            below, defs = children(node), node_def.children()
            for i in match(node, below, step):
                before = sum(d.num_leaves for d in defs[:i])
                inner.append((below.values[i], defs[i], start + before))
        found = inner
    return [(node, range(n, n + node_def.num_leaves)) for node, node_def, n in found]
