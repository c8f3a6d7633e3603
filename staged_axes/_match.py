"""Which children of a node a step means."""

from __future__ import annotations

from typing import Any

from staged_axes._paths import Index, Name, Span, Step
from staged_axes._tree import Child

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
