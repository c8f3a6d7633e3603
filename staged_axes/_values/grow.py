"""One value -> a batch of such values: the axis that each leaf will have in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from attrs import frozen

from staged_axes._record.axes import AXES
from staged_axes._record.decisions import Entries
from staged_axes._resolve import validate as _validate
from staged_axes._resolve.fit import fit
from staged_axes._resolve.misses import Decider, problem
from staged_axes._resolve.resolve import resolve
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import is_array, kinds, shape_of
from staged_axes._values import members as _members
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes.errors import Problem, unfit


@frozen(kw_only=True)
class Growth:
    """How one value becomes a batch.

    Attributes:
      entries: What was decided.
      leaves: Those of the value.
      treedef: Its structure.
      paths: Those of the leaves.
      axes: The axis that each leaf will have in the batch, counted from the front.
      deciders: Who decided.
      problems: What does not fit.
      size: How many values the batch is of, where that need not be seen in any leaf.
    """

    entries: Entries
    leaves: list[Any]
    treedef: Any
    paths: list[Path]
    axes: tuple[int | None, ...]
    deciders: tuple[Decider, ...]
    problems: list[Problem]
    size: int | None

    def check(self, others: list[Problem]) -> None:
        """Raises where something does not fit."""
        named = {p.path for p in self.problems}
        problems = self.problems + [p for p in others if p.path not in named]
        if problems:
            raise unfit(problems)

    def build(self, leaves: list[Any]) -> Any:
        """The batch; for it, the record has to say what it said for the value."""
        batch = self.treedef.unflatten(leaves)
        if self.size is None and all(axis is None for axis in self.axes):
            roots = ["value"] * len(self.axes)
            raise unfit(_validate.nothing_mapped(roots, self.deciders, may_say=False))
        fitted = fit(self.entries, batch, axis_size=self.size)
        changed = [
            problem(
                "unsteady",
                code(path, "value"),
                decider,
                there=short(leaf),
                asked=f"{_how(is_)} in the batch, but {_how(was)} for one example",
                axis=is_,
                fix=f"decide by the path: {code(path)} = {is_ if was is None else was}",
            )
            for path, decider, leaf, was, is_ in zip(
                self.paths,
                self.deciders,
                fitted.leaves,
                self.axes,
                fitted.axes,
                strict=True,
            )
            if was != is_
        ]
        if changed:
            raise unfit(changed)
        return batch


def _how(axis: int | None) -> str:
    """`axis 0` or `shared`."""
    return "shared" if axis is None else f"axis {axis}"


def grow(
    entries: Entries, value: Any, n: int, *, may_share_all: bool = False
) -> Growth:
    """Settles which axis each leaf of a value will have in a batch of n."""
    leaves, treedef = _tree.flatten(value)
    resolved = resolve(entries, AXES, value, _Repeated(leaves, n), treedef)
    paths = _tree.paths(value)
    whole = [
        _members.whole(path, leaf, axis, decider)
        for path, leaf, axis, decider in zip(
            paths, leaves, resolved.payloads, resolved.deciders, strict=True
        )
        if isinstance(axis, int) and _members.why_whole(leaf)
    ]
    checked = _validate.check(
        kinds(
            [
                _grown(leaf, axis, n)
                for leaf, axis in zip(leaves, resolved.payloads, strict=True)
            ]
        ),
        [
            None if _members.why_whole(leaf) else axis
            for leaf, axis in zip(leaves, resolved.payloads, strict=True)
        ],
        resolved.deciders,
        lambda i: _validate.Place("value", paths[i]),
    )
    return Growth(
        entries=entries,
        leaves=leaves,
        treedef=treedef,
        paths=paths,
        axes=checked.axes,
        deciders=resolved.deciders,
        problems=[*resolved.problems, *whole, *checked.problems],
        size=n if may_share_all else None,
    )


@frozen
class _Repeated(Sequence[Any]):
    """The leaves with a batch axis in front, each made when it is asked for."""

    leaves: list[Any]
    n: int

    def __len__(self) -> int:
        return len(self.leaves)

    def __getitem__(self, i: Any) -> Any:
        leaf = self.leaves[i]
        is_whole = _members.why_whole(leaf) or not is_array(leaf)
        return leaf if is_whole else _members.repeat(leaf, 0, self.n)


def _grown(leaf: Any, axis: Any, n: int) -> Any:
    """Shape and dtype of a leaf with its batch axis, as far as there can be one."""
    shape = shape_of(leaf)
    if shape is None or not isinstance(axis, int):
        return leaf
    at = axis % (len(shape) + 1)
    return jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
        (*shape[:at], n, *shape[at:]), _members.dtype_of(leaf)
    )
