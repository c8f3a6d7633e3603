"""Batches put together from values and taken apart again, by what a record says.

A user's class is only ever built by its treedef, from real leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from staged_axes._record.axes_tree import says
from staged_axes._record.decisions import Entries
from staged_axes._resolve.fit import Fit, fit
from staged_axes._resolve.misses import Decider, problem
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import shape_of
from staged_axes._values import alike as _alike, members as _members
from staged_axes._values.grow import Growth, grow
from staged_axes._words import provenance as _provenance
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code
from staged_axes.errors import BindError, MemberError, Problem, error, unfit

# Together -----------------------------------------------------------------------


def stack(values: Iterable[Any], spec: Any) -> Any:
    """One batch of several values: mapped leaves stacked, shared leaves kept.

    Nothing is lost in silence: what is shared must be the same in all of them, bit for
    bit, and so must static data, by content and type.

    Args:
      values: At least one value, in any iterable. Not changed.
      spec: A builder, or whatever else is an entry of `in_axes` in `vmap`. `per_leaf`
        decisions are asked about the leaf with the batch axis in front.

    Returns:
      A value built like the first one. A leaf that is a NumPy array or a Python number
      in all values gives a NumPy array, any other one a JAX array; a shared leaf is the
      object in the first value.

    Raises:
      BindError: The values are not alike, or do not fit the record; with every reason.
      RecordError: `spec` says no axes.

    Shapes:
      Axis k is that of the batch: of shapes `(3,)`, axes 0 and -2 make `(n, 3)`, axes
      1 and -1 make `(3, n)`.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.gain = None
      >>> sa.stack([{"gain": 2.0, "x": np.arange(2) + k} for k in (0, 5)], spec)
      {'gain': 2.0, 'x': array([[0, 1],
             [5, 6]])}
    """
    source = _provenance.caller()
    members = _listed(values)
    entries = says(spec, "spec", source).entries()
    first = _alike.model(members[0], "values[0]")
    unlike: dict[str, Problem] = {}
    for n, value in enumerate(members):
        for p in first.differences(value, f"values[{n}]"):
            unlike.setdefault(p.path, p)
    if unlike:
        raise unfit(list(unlike.values()))
    growth = grow(entries, members[0], len(members))
    rows = list(zip(*(_tree.flatten(v)[0] for v in members), strict=True))
    odd = [_odd(growth, i, parts) for i, parts in enumerate(rows)]
    growth.check([p for p in odd if p is not None])
    joined = [
        parts[0] if axis is None else _members.join(parts, axis)
        for parts, axis in zip(rows, growth.axes, strict=True)
    ]
    return growth.build(joined)


def broadcast(entries: Entries, value: Any, n: Any, *, may_share_all: bool) -> Any:
    """A batch of n equal examples."""
    size = _integer(n)
    if not isinstance(size, int) or size < 1:
        raise error(
            BindError,
            "the number of examples in a batch is an int, at least 1.",
            Problem(kind="argument", path="n", there=_said(n)),
            fixes=["bound.broadcast(value, 32)"],
        )
    growth = grow(entries, value, size, may_share_all=may_share_all)
    growth.check([])
    repeated = [
        leaf if axis is None else _members.repeat(leaf, axis, size)
        for leaf, axis in zip(growth.leaves, growth.axes, strict=True)
    ]
    return growth.build(repeated)


def _listed(values: Any) -> list[Any]:
    """The values as a list of at least one."""
    if isinstance(values, Mapping | str) or not isinstance(values, Iterable):
        raise error(
            BindError,
            f"stack takes several values, as a list, not a {type(values).__name__}.",
            Problem(kind="argument", path="values", there=short(values)),
            fixes=["sa.stack([value], spec) makes a batch of one"],
        )
    members = list(values)
    if not members:
        raise error(
            BindError,
            "there is no value to stack, so nothing says what the batch is built like.",
            Problem(kind="argument", path="values", there="no values"),
            fixes=["give at least one value; was a generator used up before?"],
        )
    return members


def _odd(growth: Growth, i: int, parts: Sequence[Any]) -> Problem | None:
    """The problem of one leaf, where it is not in all values what it has to be."""
    path, axis, first = growth.paths[i], growth.axes[i], parts[0]
    for n, part in enumerate(parts):
        if axis is None and not _alike.are_same(first, part):
            return _alike.shared_differs(
                path, growth.deciders[i], part, first, f"values[{n}]", "values[0]"
            )
        if axis is not None and _form(part) != _form(first):
            return problem(
                "member",
                code(path, "value"),
                growth.deciders[i],
                there=f"{short(part)} in values[{n}]",
                asked=f"{short(first)} in values[0]",
                axis=axis,
                shape=shape_of(part),
                fix="give all of them one shape and one dtype",
            )
    return None


def _form(x: Any) -> tuple[Any, ...]:
    """Shape and dtype of what can be mapped."""
    shape = shape_of(x)
    return (None,) if shape is None else (shape, _members.dtype_of(x))


# Apart --------------------------------------------------------------------------


def take(entries: Entries, batched: Any, k: Any, size: int | None) -> Any:
    """Example k of a batch; `size` where no leaf is mapped."""
    fitted = _openable(entries, batched, size)
    return _example(fitted, _number(k, fitted.batch_size))


def iterate(entries: Entries, batched: Any, size: int | None) -> Iterator[Any]:
    """The examples of a batch, each made when it is asked for."""
    fitted = _openable(entries, batched, size)
    return (_example(fitted, k) for k in range(fitted.batch_size or 0))


def replace(
    entries: Entries, batched: Any, k: Any, value: Any, size: int | None
) -> Any:
    """The batch with another example k."""
    fitted = _openable(entries, batched, size)
    k = _number(k, fitted.batch_size)
    unlike = _alike.model(batched, "the batch").differences(value, "the new member")
    if unlike:
        raise unfit(unlike)
    parts, _ = _tree.flatten(value)
    misfits = [
        _misfit(path, decider, leaf, axis, part)
        for path, decider, leaf, axis, part in zip(
            _tree.paths(batched),
            fitted.resolution.deciders,
            fitted.leaves,
            fitted.axes,
            parts,
            strict=True,
        )
    ]
    if any(misfits):
        raise unfit([p for p in misfits if p is not None])
    return fitted.treedef.unflatten(
        [
            leaf if axis is None else _members.with_member(leaf, axis, k, part)
            for leaf, axis, part in zip(fitted.leaves, fitted.axes, parts, strict=True)
        ]
    )


def _openable(entries: Entries, batched: Any, size: int | None) -> Fit:
    """A batch that fits the record, and whose mapped leaves can be taken apart."""
    fitted = fit(entries, batched, axis_size=size)
    whole = [
        _members.whole(
            _tree.paths(batched)[i], leaf, axis, fitted.resolution.deciders[i]
        )
        for i, (leaf, axis) in enumerate(zip(fitted.leaves, fitted.axes, strict=True))
        if axis is not None and _members.why_whole(leaf)
    ]
    if whole:
        raise unfit(whole)
    return fitted


def _example(fitted: Fit, k: Any) -> Any:
    """Example k, of the class of the batch."""
    return fitted.treedef.unflatten(
        [
            leaf if axis is None else _members.member(leaf, axis, k)
            for leaf, axis in zip(fitted.leaves, fitted.axes, strict=True)
        ]
    )


def _misfit(
    path: Path, decider: Decider, leaf: Any, axis: int | None, part: Any
) -> Problem | None:
    """The problem of one leaf of a new example, where it does not fit the batch."""
    if axis is None:
        if _alike.are_same(leaf, part):
            return None
        return _alike.shared_differs(
            path, decider, part, leaf, "the new member", "the batch"
        )
    shape = shape_of(leaf) or ()
    single = (*shape[:axis], *shape[axis + 1 :])
    is_alike = shape_of(part) == single and _members.are_of_one_kind(leaf, part)
    if is_alike and _members.can_hold(leaf, part):
        return None
    wanted = jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
        single, _members.dtype_of(leaf)
    )
    return problem(
        "member",
        code(path, "value"),
        decider,
        there=f"{short(part)} in the new member",
        asked=f"{short(wanted)} for each example of the batch",
        axis=axis,
        shape=shape_of(part),
        fix="a number in it is too large for that"
        if is_alike
        else "give it the shape and the kind of numbers of one example",
    )


def _number(k: Any, n: int | None) -> Any:
    """The number of an example, counted from the front; a traced one as it is.

    Raises:
      MemberError: There is no such example.
    """
    number = _integer(k)
    if number is not None and (
        not isinstance(number, int) or (n is not None and -n <= number < n)
    ):
        return number % n if isinstance(number, int) and n else number
    size = "no" if n is None else n
    raise error(
        MemberError,
        f"the number of an example is an int from {-(n or 0)} to {(n or 0) - 1} in a "
        f"batch of {size}.",
        Problem(kind="index", path="k", there=_said(k)),
        fixes=["bound.unstack(batched) gives all of them"],
    )


def _integer(x: Any) -> Any:
    """A Python int where its value is known, a tracer where it is not; else None."""
    if isinstance(x, bool | np.bool_):
        return None
    if isinstance(x, int | np.integer):
        return int(x)
    is_array = isinstance(x, np.ndarray | jax.Array) and x.shape == ()
    if not is_array or not jnp.issubdtype(x.dtype, jnp.integer):
        return None
    return x if isinstance(x, jax.core.Tracer) else int(x)


def _said(x: Any) -> str:
    """What was given, in short."""
    return str(x) if isinstance(x, int) else short(x)
