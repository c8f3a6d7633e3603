"""An entry of `in_axes` or `out_axes`, an axes tree among them -> who says the axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from staged_axes._record.axes import AXES, STATIC, PerLeaf
from staged_axes._record.decisions import UNDECIDED, Says
from staged_axes._record.placeholders import Placeholder, Places, decide
from staged_axes._record.record import Record
from staged_axes._structure import tree as _tree
from staged_axes._words.paths import Name, Path, Step, code
from staged_axes._words.provenance import Source
from staged_axes.errors import Problem, RecordError, error


def is_axis(x: Any) -> bool:
    """Is it an axis, or something close enough to be refused as one?"""
    return x is None or x is STATIC or isinstance(x, int | np.integer | float)


def says(entry: Any, label: str, source: Source, *, name: str | None = None) -> Says:
    """Who says the axes of one argument: a record for whatever the user gave.

    Args:
      entry: What the user gave.
      label: What it is called in messages.
      source: The line that gave it.
      name: What it is called in code; the label unless it is given.
    """
    name = label if name is None else name
    if isinstance(entry, Placeholder):
        raise error(
            RecordError,
            f"{label} is the place {code(entry.__path__)}, not a builder.",
            Problem(kind="placeholder", path=label, there=code(entry.__path__)),
            fixes=["give the builder itself, or another builder for this argument"],
        )
    if isinstance(entry, Places):
        return entry.__record__
    if isinstance(entry, Says):
        return entry
    if is_axis(entry):
        axis = AXES.check(entry, label)
        return Record(AXES, axis, source, f"{label}={axis!r}", name)
    if callable(entry) and not _tree.is_node(entry):
        return Record(AXES, PerLeaf(entry), source, label, name)
    return record_of_tree(entry, label, source, name)


def record_of_tree(tree: Any, label: str, source: Source, name: str = "spec") -> Record:
    """The record of an ordinary axes tree; its static data is not read.

    A leaf that the tree does not reach is undecided, which is an error when a value is
    bound, as it is for `jax.vmap`.
    """
    _tree.flatten(tree, label)
    record = Record(AXES, UNDECIDED, source, label, name)
    for path, entry in _entries(tree):
        is_fn = callable(entry) and not isinstance(entry, Places | PerLeaf)
        decide(Placeholder(record, path, None), PerLeaf(entry) if is_fn else entry)
    return record


def _entries(tree: Any) -> Iterator[tuple[Path, Any]]:
    """Path and axis of each leaf of an axes tree, None among them."""
    stack: list[tuple[Path, Any]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        below = _tree.children(node)
        if not below and (node is None or not _tree.is_node(node)):
            yield path, node
        pairs = list(zip(below.steps, below.values, strict=True))
        if not below.is_named:
            pairs = _by_attribute(node, below) or pairs
        stack += reversed([((*path, step), x) for step, x in pairs])


def _by_attribute(node: Any, below: _tree.Children) -> list[tuple[Step, Any]]:
    """The children of a keyless node by the attributes that hold them.

    Such a class may leave a child that is None out of its children, so positions in an
    axes tree need not be those in the value (https://github.com/jax-ml/jax/issues/26053).
    """
    held = {
        name: x
        for name, x in _tree.attributes(node).items()
        if x is None or any(x is child for child in below.values)
    }
    if sum(x is not None for x in held.values()) != len(below):
        return []
    return [(Name(name), x) for name, x in held.items()]
