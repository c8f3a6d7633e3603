"""Which children of a node a step means, and which nodes a path."""

from __future__ import annotations

from typing import Any

from staged_axes._paths import Index, Name, Path, Span, Step
from staged_axes._tree import Child, attributes, children

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
        return _by_attribute(node, below, step.name)
    return []


def _by_attribute(node: Any, below: list[Child], name: str) -> list[int]:
    """The position of the child that an attribute of a keyless node holds."""
    held = held_children(node, below)
    # One object may be several children, as small numbers are: then the order tells.
    if [id(x) for x in held.values()] == [id(c.value) for c in below]:
        return [list(held).index(name)] if name in held else []
    try:
        found = getattr(node, name, _ABSENT)
    except Exception:  # a property of the user's may raise anything
        return []
    same = [i for i, c in enumerate(below) if c.value is found]
    return same if len(same) == 1 or found is None else []


def held_children(node: Any, below: list[Child]) -> dict[str, Any]:
    """The attributes that hold children of a node, by name."""
    return {
        name: x
        for name, x in attributes(node).items()
        if any(x is c.value for c in below)
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
                inner.append((below[i].value, defs[i], start + before))
        found = inner
    return [(node, range(n, n + node_def.num_leaves)) for node, node_def, n in found]
