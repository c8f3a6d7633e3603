"""A record that is bound to a value: one axis for each leaf, and what to do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.tree_util as jtu
from attrs import field, frozen

from staged_axes._programs.batch import batch
from staged_axes._programs.batched import BatchedFunction
from staged_axes._record.axes import STATIC
from staged_axes._record.decisions import Entries, Says
from staged_axes._resolve.resolve import Resolution
from staged_axes._run import vmap as mapping
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import Kinds
from staged_axes._values import values as _values
from staged_axes._words.collapse import Row, collapse
from staged_axes._words.display import Table
from staged_axes.errors import BindError, Problem, count, error

SHOWN = 64  # steps of a path in a table


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

    @property
    def _axis_size(self) -> int | None:
        """The batch size, where no leaf tells it."""
        is_mapped = any(axis is not None for axis in self.leaf_axes)
        return None if is_mapped else self.batch_size

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
        options.setdefault("axis_size", self._axis_size)
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
        options.setdefault("axis_size", self._axis_size)
        return batch(fn, in_axes=self, out_axes=out_axes, **options)

    def take(self, batched: Any, k: Any) -> Any:
        """Example k of a batch.

        Args:
          batched: Any value that the record fits. Not changed.
          k: The number of the example, negative from the end. Under `jit` it may be
            traced; it is then not checked.

        Returns:
          A value of the same class, with the same static data and the same objects as
          shared leaves. What comes out of a NumPy array is a view of it.

        Raises:
          MemberError: There is no example k; also an `IndexError`.
          BindError: The value does not fit, or a mapped leaf, such as a BCOO array,
            cannot be taken apart.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.gain = None
          >>> batch = {"gain": 2.0, "x": np.array([[0, 1], [5, 6]])}
          >>> spec.bind(batch).take(batch, -1)
          {'gain': 2.0, 'x': array([5, 6])}
        """
        return _values.take(self._entries, batched, k, self._axis_size)

    def unstack(self, batched: Any) -> list[Any]:
        """All examples of a batch, in order; the reverse of `stack`.

        Args:
          batched: Any value that the record fits.

        Raises:
          BindError: As for `take`.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> batch = {"x": np.array([[0, 1], [5, 6]])}
          >>> spec.bind(batch).unstack(batch)
          [{'x': array([0, 1])}, {'x': array([5, 6])}]
        """
        return list(self.iterate(batched))

    def iterate(self, batched: Any) -> Iterator[Any]:
        """The examples of a batch one after the other, without holding all of them.

        Args:
          batched: Any value that the record fits.

        Raises:
          BindError: As for `take`; at once, not at the first example.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> batch = {"x": np.array([[0, 1], [5, 6]])}
          >>> [int(one["x"].sum()) for one in spec.bind(batch).iterate(batch)]
          [1, 11]
        """
        return _values.iterate(self._entries, batched, self._axis_size)

    def set(self, batched: Any, k: Any, value: Any) -> Any:
        """The batch with another example k.

        Args:
          batched: Any value that the record fits. Not changed.
          k: The number of the example, as for `take`.
          value: The new example, built like the others, the same where they share.

        Returns:
          A new batch, with the dtypes of the old one.

        Raises:
          MemberError: There is no example k; also an `IndexError`.
          BindError: The new example is not like the others; with every reason.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> batch = {"x": np.array([[0, 1], [5, 6]])}
          >>> spec.bind(batch).set(batch, 0, {"x": np.array([8, 9])})
          {'x': array([[8, 9],
                 [5, 6]])}
        """
        return _values.replace(self._entries, batched, k, value, self._axis_size)

    def broadcast(self, value: Any, n: int) -> Any:
        """A batch of n equal examples.

        Args:
          value: One example. Not changed.
          n: How many, at least 1.

        Returns:
          A value of the same class with the same objects as shared leaves. A mapped
          NumPy array becomes a read-only view, which takes no memory; a JAX array is
          copied n times, unless this is traced.

        Raises:
          BindError: The value does not fit; with every reason.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> bound = spec.bind({"x": np.array([[0, 1], [5, 6]])})
          >>> bound.broadcast({"x": np.array([8, 9])}, 3)
          {'x': array([[8, 9],
                 [8, 9],
                 [8, 9]])}
        """
        may_share_all = self._axis_size is not None
        return _values.broadcast(self._entries, value, n, may_share_all=may_share_all)

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
            steps = [str(_tree.step_of(key)) for key in keys[:SHOWN]]
            deeper = [f"... {len(keys) - SHOWN} deeper"] if keys[SHOWN:] else []
            path = ("value", *steps, *deeper)
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
