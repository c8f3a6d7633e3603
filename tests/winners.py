"""Who wins, worked out naively: lists of decisions, walked through leaf by leaf.

Values are written as plain models: `{"a": ...}` for a dict, `[...]` for a list,
`Pair(..., ...)` for a named tuple, and `LEAF`. Nothing of the package is used here.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

LEAF = None
SIZE = 3


class Pair(NamedTuple):
    """A node that is reached by index and by field."""

    first: Any
    second: Any


class Disagree(Exception):  # noqa: N818
    """Two stages decide one place differently."""


@dataclasses.dataclass
class Write:
    """One decision, as the user writes it."""

    stage: str | None
    path: tuple[Any, ...]
    axis: int | None
    override: bool = False

    @property
    def slices(self):
        """How many of its steps are slices."""
        return sum(isinstance(step, slice) for step in self.path)


def value_of(model):
    """The value that a model stands for; every axis of every leaf has one size."""
    if model is LEAF:
        return np.zeros((SIZE, SIZE, SIZE), np.float32)
    if isinstance(model, dict):
        return {key: value_of(child) for key, child in model.items()}
    if isinstance(model, Pair):
        return Pair(*map(value_of, model))
    return [value_of(child) for child in model]


def children(model):
    """The children of a node in flatten order, each with its plain name."""
    if isinstance(model, dict):
        return [(key, model[key]) for key in sorted(model)]
    return [] if model is LEAF else list(enumerate(model))


def leaves(model, path=()):
    """The path of each leaf in flatten order, with the nodes on the way."""
    if model is LEAF:
        return [path]
    return [
        leaf
        for name, child in children(model)
        for leaf in leaves(child, (*path, (model, name)))
    ]


def means(node, name, step):
    """Does a step, written for a node, mean its child of that name?"""
    if isinstance(node, dict):
        return step == slice(None) or (type(step) is type(name) and step == name)
    if isinstance(node, Pair) and isinstance(step, str):
        return Pair._fields.index(step) == name
    if isinstance(step, slice):
        return name in range(*step.indices(len(node)))
    return isinstance(step, int) and step % len(node) == name and step < len(node)


def covers(path, leaf):
    """Is a leaf at or below a written place?"""
    return len(path) <= len(leaf) and all(
        means(node, name, step) for step, (node, name) in zip(path, leaf, strict=False)
    )


def written(writes):
    """What stands after all these writes.

    Raises:
      Disagree: Two stages decide one place differently.
    """
    standing = []
    for new in writes:
        for old in standing:
            if (
                old.path == new.path
                and old.stage != new.stage
                and old.axis != new.axis
                and not new.override
            ):
                raise Disagree
        standing = [old for old in standing if not replaces(new, old)]
        standing.append(new)
    return standing


def replaces(new, old):
    """Does a write remove an earlier one for the same place or one below it?"""
    is_below = old.path[: len(new.path)] == new.path
    return is_below and (new.stage == old.stage or new.override)


def winner(standing, leaf):
    """The write that decides a leaf, None if there is none.

    Raises:
      Disagree: Two stages decide one place differently, by different spellings.
    """
    rivals = [w for w in standing if covers(w.path, leaf)]
    alive = []
    for i, old in enumerate(rivals):
        later = [
            new
            for new in rivals[i + 1 :]
            if new.slices == 0
            and len(new.path) < len(old.path)
            and (new.stage == old.stage or new.override)
        ]
        if not later:
            alive.append(old)
    if not alive:
        return None
    depth = max(len(w.path) for w in alive)
    deepest = [w for w in alive if len(w.path) == depth]
    fewest = min(w.slices for w in deepest)
    best = None
    for w in deepest:
        if w.slices == fewest:
            if (
                best is not None
                and best.stage != w.stage
                and best.axis != w.axis
                and not w.override
            ):
                raise Disagree
            best = w
    return best


def axes(model, standing, default=None):
    """One axis for each leaf of a model, in flatten order, counted from the front."""
    found = []
    for leaf in leaves(model):
        best = winner(standing, leaf)
        axis = default if best is None else best.axis
        found.append(None if axis is None else axis % SIZE)
    return tuple(found)


def models(max_leaves=8):
    """Random models."""
    return st.recursive(
        st.just(LEAF),
        lambda child: st.one_of(
            st.dictionaries(
                st.sampled_from(["a", "b", "layer c"]), child, min_size=1, max_size=3
            ),
            st.lists(child, min_size=1, max_size=3),
            st.builds(Pair, child, child),
        ),
        max_leaves=max_leaves,
    )


@st.composite
def spellings(draw, model):
    """A place that is in the model, in one of its spellings."""
    path, node = (), model
    while node is not LEAF and draw(st.booleans()):
        below = children(node)
        name, child = below[draw(st.integers(0, len(below) - 1))]
        ways = [name]
        if isinstance(node, Pair):
            ways.append(Pair._fields[name])
        if not isinstance(node, dict):
            ways += [name - len(below), slice(name, None)]
        if all(sub == child for _, sub in below):
            ways.append(slice(None))
        path, node = (*path, draw(st.sampled_from(ways))), child
    return path


AXES = st.sampled_from([None, 0, 1, 2, -1, -3])


@st.composite
def programs(draw, model, stages=(None, "x", "y"), overriding=("y",), max_size=7):
    """Writes by several stages, some of which may override."""
    found = []
    for _ in range(draw(st.integers(1, max_size))):
        stage = draw(st.sampled_from(stages))
        path, axis = draw(spellings(model)), draw(AXES)
        found.append(Write(stage, path, axis, stage in overriding))
    return found
