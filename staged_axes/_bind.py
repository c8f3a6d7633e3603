"""Record and value -> `BoundAxes`: one checked axis for each leaf, and who decided."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax.tree_util as jtu
from attrs import evolve, field, frozen

from staged_axes import _tree, _validate
from staged_axes import _vmap as mapping
from staged_axes._axes import AXES, STATIC
from staged_axes._batch import BatchedFunction, batch
from staged_axes._collapse import Row, collapse
from staged_axes._decisions import Entries, Says
from staged_axes._display import Table
from staged_axes._leaves import Kinds, kinds
from staged_axes._news import Bound
from staged_axes._paths import code
from staged_axes._record import Record
from staged_axes._resolve import Resolution, resolve
from staged_axes.errors import BindError, Problem, count, error, unfit

REMEMBERED = 4


@frozen(kw_only=True, repr=False)
class BoundAxes(Says):
    """One axis for each leaf of a value, checked against its shapes.

    Made by `AxesBuilder.bind`; do not build it by hand. It keeps no array of the value.

    Attributes:
      leaf_axes: An axis, counted from the front, or None for each leaf, in flatten
        order.
      batch_size: How many examples there are; None for a value without leaves.
      treedef: The value's structure, with its static data.
    """

    leaf_axes: tuple[int | None, ...]
    batch_size: int | None
    treedef: Any = field(eq=False)
    _entries: Entries = field(eq=False)
    _resolution: Resolution = field(eq=False)
    _kinds: Kinds = field(eq=False)
    _keys: tuple[Any, ...] = field(eq=False)

    def entries(self) -> Entries:
        """What the record said when the value was bound."""
        return self._entries

    @property
    def in_axes(self) -> Any:
        """The value's own structure and static data with an axis at each leaf.

        For `jax.vmap(fn, in_axes=(bound.in_axes,))`. This is the one place where a
        user's class is built with axes in it.

        Raises:
          BindError: The class does not take it: it validates, converts or inspects its
            leaves. `vmap` and `batch` of this object work with every class.

        Example:
          >>> import jax, jax.numpy as jnp, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.b = None
          >>> value = {"a": jnp.arange(3.0), "b": jnp.ones(2)}
          >>> spec.bind(value).in_axes
          {'a': 0, 'b': None}
        """
        marks = [object() for _ in self.leaf_axes]
        try:
            tree = self.treedef.unflatten(self.leaf_axes)
            held, structure = _with_none(tree)
            marked, wanted = _with_none(self.treedef.unflatten(marks))
            fits = structure == wanted
        except Exception as e:
            why = f"{type(e).__name__}: {e}"
            raise self._refused(why) from e
        # The marks tell the leaves from the value's own None.
        kept = [x for x, mark in zip(held, marked, strict=False) if mark is not None]
        if not (
            fits
            and all(x is None or type(x) is int for x in kept)
            and kept == list(self.leaf_axes)
        ):
            why = "it changes what is put into it"
            raise self._refused(why)
        return tree

    def holds_for(self, there: Kinds, treedef: Any, axis_size: int | None) -> bool:
        """Would another value be bound just so, where the record says the same?

        Args:
          there: The kinds of its leaves.
          treedef: Its structure.
          axis_size: The batch size, where the user gives it.
        """
        is_mapped = any(axis is not None for axis in self.leaf_axes)
        if not (is_mapped and axis_size is None) and axis_size != self.batch_size:
            return False
        try:
            return self._kinds == there and bool(self.treedef == treedef)
        except Exception:  # static data may have an `__eq__` that raises anything
            return False

    def _refused(self, why: str) -> BindError:
        """The error for a class that cannot hold axes."""
        data = self.treedef.node_data()
        name = data[0].__name__ if data else "this value"
        return error(
            BindError,
            f"{name} cannot be built with axes in the place of arrays.",
            Problem(kind="in-axes", path="bound.in_axes", there=why),
            fixes=["bound.vmap(fn) or bound.batch(fn): they build no object with axes"],
        )

    def vmap(
        self, fn: Callable[..., Any], out_axes: Any = 0, **options: Any
    ) -> Callable[..., Any]:
        """Maps a function of one argument as `sa.vmap` does, with these axes.

        Args:
          fn: The function of one example.
          out_axes: As in `sa.vmap`.
          **options: The other options of `sa.vmap`.

        Returns:
          The mapped function. It takes every value that the record fits.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> value = {"a": jnp.arange(3.0), "b": jnp.ones(2)}
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.b = None
          >>> spec.bind(value).vmap(lambda v: v["a"] + v["b"].sum())(value)
          Array([2., 3., 4.], dtype=float32)
        """
        if not any(axis is not None for axis in self.leaf_axes):
            options.setdefault("axis_size", self.batch_size)
        return mapping.vmap(fn, in_axes=self, out_axes=out_axes, **options)

    def batch(
        self, fn: Callable[..., Any], out_axes: Any = 0, **options: Any
    ) -> BatchedFunction:
        """Maps and compiles a function of one argument as `sa.batch` does.

        Args:
          fn: The function of one example.
          out_axes: As in `sa.batch`.
          **options: The other options of `sa.batch`.

        Returns:
          The function over batches. It takes every value that the record fits.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> value = {"a": jnp.arange(3.0), "b": jnp.ones(2)}
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.b = None
          >>> spec.bind(value).batch(lambda v: v["a"] + v["b"].sum())(value)
          Array([2., 3., 4.], dtype=float32)
        """
        if not any(axis is not None for axis in self.leaf_axes):
            options.setdefault("axis_size", self.batch_size)
        return batch(fn, in_axes=self, out_axes=out_axes, **options)

    def table(self) -> Table:
        """Path, array, axis, size, who decided; agreeing subtrees are one row."""
        rows = []
        for i, (keys, payload, axis, decider) in enumerate(
            zip(
                self._keys,
                self._resolution.payloads,
                self.leaf_axes,
                self._resolution.deciders,
                strict=True,
            )
        ):
            how = "static" if payload is STATIC else "-" if axis is None else str(axis)
            size = "" if axis is None else str(self.batch_size)
            path = ("value", *(str(_tree.step_of(key)) for key in keys))
            cells = (self._kinds.text(i), how, size, str(decider))
            rows.append(Row(path, cells))
        few = collapse(
            rows, decision=(1, 2, 3), notable=lambda row: row.cells[1] != "-"
        )
        mapped = sum(axis is not None for axis in self.leaf_axes)
        n = len(self.leaf_axes)
        return Table(
            f"{count(n, 'leaf', 'leaves')}, {mapped} mapped, "
            f"batch size {self.batch_size}",
            ("path", "array", "axis", "size", "decided by"),
            tuple(("".join(row.path), *row.cells) for row in few),
        )

    def __str__(self) -> str:
        return self.table().text()

    def __repr__(self) -> str:
        mapped = sum(axis is not None for axis in self.leaf_axes)
        return (
            f"<BoundAxes: {mapped} of {len(self.leaf_axes)} leaves mapped, "
            f"batch size {self.batch_size}>"
        )

    def __rich__(self) -> Any:
        return self.table().__rich__()

    def _repr_html_(self) -> str:
        return self.table().html()


def _with_none(tree: Any) -> tuple[list[Any], Any]:
    """Leaves and structure, with None as a leaf."""
    return jtu.tree_flatten(tree, is_leaf=lambda x: x is None)


def bind(
    record: Record,
    value: Any,
    *,
    like: Any = None,
    axis_size: int | None = None,
) -> BoundAxes:
    """Resolves a record for a value and checks it against the value's shapes.

    Raises:
      BindError: They do not fit; with every reason.
    """
    begun = time.perf_counter()
    bound = _bound_before(record, value, axis_size)
    if bound is None:
        bound = _bind(record, value, axis_size)
    if like is not None:
        problems = _validate.against_template(
            bound.leaf_axes, bound.batch_size, bound._resolution.deciders, value, like
        )
        if problems:
            raise unfit(problems)
    record.listeners.tell(Bound(axes=bound, seconds=time.perf_counter() - begun))
    return bound


def _bound_before(
    record: Record, value: Any, axis_size: int | None
) -> BoundAxes | None:
    """What was bound to a value that looks the same, with this value's static data.

    Equal treedefs may hold static data of other types (`1` and `True` are equal), so
    only what does not depend on it is taken over.
    """
    entries = record.entries()
    recent: tuple[BoundAxes, ...] = record.recent
    known = [bound for bound in recent if bound.entries() is entries]
    if not known:
        return None
    leaves, treedef = _tree.flatten(value)
    there = kinds(leaves)
    for bound in known:
        if bound.holds_for(there, treedef, axis_size):
            return evolve(bound, treedef=treedef)
    return None


def _bind(record: Record, value: Any, axis_size: int | None) -> BoundAxes:
    """Binds a value that looks like none that is remembered."""
    leaves, treedef, keys = _tree.flatten_with_keys(value)
    entries = record.entries()
    resolved = resolve(entries, AXES, value, leaves, treedef)
    there = kinds(leaves)
    checked = _validate.check(
        there,
        resolved.payloads,
        resolved.deciders,
        lambda i: _validate.Place("value", tuple(map(_tree.step_of, keys[i]))),
        axis_size=axis_size,
    )
    problems = [
        *resolved.problems,
        *_traced(value, treedef),
        *checked.problems,
    ]
    if leaves and checked.batch_size is None and not problems:
        problems += _validate.nothing_mapped(["value"] * len(leaves), resolved.deciders)
    if problems:
        raise unfit(problems)
    bound = BoundAxes(
        leaf_axes=checked.axes,
        batch_size=checked.batch_size,
        treedef=treedef,
        entries=entries,
        resolution=resolved,
        kinds=there,
        keys=keys,
    )
    if resolved.is_general:
        record.recent = (bound, *record.recent[: REMEMBERED - 1])
    return bound


def _traced(value: Any, treedef: Any) -> list[Problem]:
    """A problem for each static field that holds a tracer."""
    return [
        Problem(
            kind="tracer",
            path=code(path, "value") + ("" if name[0] == "(" else ".") + name,
            there="a static field that holds a tracer",
            asked="static data must be concrete",
            fix="make it a leaf, or build the value outside of the transformation",
        )
        for path, name in _tree.traced_statics(value, treedef)
    ]
