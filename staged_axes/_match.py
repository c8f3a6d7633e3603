"""Which children of a node a step means, and which nodes a path."""

from __future__ import annotations

from typing import Any

from staged_axes._paths import Index, Name, Path, Span, Step
from staged_axes._tree import Child, children

_ABSENT = object()


def match(node: Any, below: list[Child], step: Step) -> list[int]:
    """The positions of the children that a step means.

    A field and an item of one name are one place; a tuple's fields are reached by
    index too; a child without a key is reached by the attribute that holds it.
    """
    if isinstance(step, Span):
        every = range(len(below))
        if step.is_all:
            return list(every)
        is_row = isinstance(node, tuple) or all(
            isinstance(c.step, Index) for c in below
        )
        return list(every[step.start : step.stop : step.step]) if is_row else []
    same = [i for i, child in enumerate(below) if child.step == step]
    if same:
        return same
    if isinstance(step, Index):
        is_row = isinstance(node, tuple | list) or not any(c.is_named for c in below)
        i = step.index + len(below) if step.index < 0 else step.index
        return [i] if is_row and 0 <= i < len(below) else []
    if isinstance(step, Name) and not any(c.is_named for c in below):
        held = getattr(node, step.name, _ABSENT)
        held_by = [i for i, c in enumerate(below) if c.value is held]
        return held_by if len(held_by) == 1 or held is None else []
    return []


def locate(path: Path, value: Any, treedef: Any) -> list[tuple[Any, range]]:
    """The nodes at a path, each with the numbers of its leaves."""
    found = [(value, treedef, 0)]
    for step in path:
        inner = []
        for node, node_def, start in found:
            below, defs = children(node), node_def.children()
            for i in match(node, below, step):
                before = sum(d.num_leaves for d in defs[:i])
                inner.append((below[i].value, defs[i], start + before))
        found = inner
    return [(node, range(n, n + node_def.num_leaves)) for node, node_def, n in found]
