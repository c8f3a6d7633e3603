"""`jax.vmap` over the flat leaves of a call: no user class ever sees an axis.

Outside, the arguments are flattened and each leaf gets its axis. Inside, they are put
together again from one example's leaves, the user's function runs, and its output is
taken apart in the same way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from attrs import field, frozen

from staged_axes._record.decisions import Entries, Says
from staged_axes._record.placeholders import Places
from staged_axes._resolve.validate import checked_size
from staged_axes._run.arguments import InAxes, in_axes_of
from staged_axes._run.like import check_form, templates
from staged_axes._run.outputs import Auto, Late, Output, out_axes_of, take_apart
from staged_axes._run.plan import Plan, plan
from staged_axes._structure import tree as _tree
from staged_axes._words import provenance as _provenance
from staged_axes._words.display import short
from staged_axes.errors import (
    BatchError,
    BindError,
    Problem,
    error,
    with_article,
)


@frozen(kw_only=True)
class Mapped:
    """A function together with all that says how it is mapped.

    Attributes:
      fn: The function of one example.
      in_axes: Who says the axes of each argument.
      out_says: Who says the output axes.
      axis_size: The batch size, where the user gives it.
      like: The value of one example for each argument, in the form of `in_axes`.
      options: The other options of `jax.vmap`.
    """

    fn: Callable[..., Any]
    in_axes: InAxes
    out_says: Says | Auto
    axis_size: int | None = None
    like: Any = None
    options: Mapping[str, Any] = field(factory=dict)

    def plan(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Plan, list[Any]]:
        """Settles the axis of each leaf of a call.

        Returns:
          The plan, and the leaves of `(args, kwargs)`.

        Raises:
          BindError: The call and the axes do not fit; with every reason.
        """
        arguments = self.in_axes.place(args, kwargs)
        try:
            leaves, treedef = _tree.flatten((tuple(args), dict(kwargs)))
        except BindError:  # once more, to learn which argument it is
            for argument in arguments:
                _tree.flatten(argument.value, argument.name)
            raise
        likes = [None] * len(arguments)
        if self.like is not None:
            likes = templates(self.like, self.in_axes, arguments, len(args))
        return plan(arguments, leaves, treedef, self.axis_size, likes), leaves

    def everyone(self) -> list[Says]:
        """All that say something of axes."""
        out = [] if isinstance(self.out_says, Auto) else [self.out_says]
        return [*self.in_axes.everyone(), *out]

    def said(self) -> tuple[Entries, ...]:
        """All that is said of axes now; the same objects for as long as it counts."""
        return tuple(says.entries() for says in self.everyone())

    def run(self, plan: Plan, leaves: Sequence[Any]) -> tuple[list[Any], Output]:
        """Maps the function over the leaves.

        Returns:
          The output's arrays, and how to put the output together from them.

        Raises:
          BatchError: The output axes do not fit the output.
        """
        late = Late([])
        mapped = [i for i, axis in enumerate(plan.axes) if axis is not None]

        def one_example(witness: Any, parts: list[Any]) -> list[Any]:
            whole = list(leaves)
            for i, part in zip(mapped, parts, strict=True):
                whole[i] = part
            args, kwargs = plan.treedef.unflatten(whole)
            out = self.fn(*args, **kwargs)
            sums = bool(self.options.get("sum_match"))
            arrays, output = take_apart(out, self.out_says, witness, sums=sums)
            late.output = output
            late.axes[:] = output.axes
            return arrays

        arrays = jax.vmap(
            one_example,
            in_axes=(0, [plan.axes[i] for i in mapped]),
            out_axes=late.axes,
            axis_size=plan.batch_size,
            **self.options,
        )(np.zeros(plan.batch_size, bool), [leaves[i] for i in mapped])
        assert late.output is not None
        return arrays, late.output


def vmap(
    fn: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    *,
    like: Any = None,
    **options: Any,
) -> Callable[..., Any]:
    """Maps a function as `jax.vmap` does, with axes that were decided early.

    Nothing is compiled and nothing is kept; it works under `jit`, `grad`, `scan` and
    itself. Static data of an axes tree never matters, and no class of yours is ever
    built with axes in it.

    Args:
      fn: The function of one example. Its arguments and its output may be any pytrees.
      in_axes: An int or None for all positional arguments; a tuple or list with one
        entry for each; a dict by parameter name; or a builder for the only argument.
        An entry is an int, None, a builder, a function from leaf to axis, or an
        ordinary axes tree. Arguments that a dict does not name, and keyword arguments
        otherwise, are mapped on axis 0.
      out_axes: An int, None, an axes tree, a builder, or `AUTO`. Negative axes count
        from the end of the batched output. Leaves of the output that are no arrays
        (strings, functions, objects) pass through.
      axis_name: As in `jax.vmap`, for collectives.
      axis_size: The batch size. Needed only where no leaf is mapped.
      spmd_axis_name: As in `jax.vmap`.
      like: The value of one example, in the form of `in_axes`: for the only argument
        the value itself, else a tuple or a dict, with None where nothing is to be
        checked. Mapped leaves must then have its shape with the batch axis put in,
        shared leaves its very shape.
      **options: Whatever else the `jax.vmap` that is installed takes, as `sum_match`.

    Returns:
      The mapped function.

    Raises:
      RecordError: `in_axes` or `out_axes` cannot be read.
      BindError: At the call: arguments and axes do not fit; with every reason.
      BatchError: At the call: the output axes do not fit the output.

    Shapes:
      A leaf of shape `(3, 5)` mapped on axis 1 gives 5 examples of shape `(3,)`.

    Example:
      >>> import jax.numpy as jnp, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.bar = None
      >>> value = {"a": jnp.arange(3.0), "bar": {"b": jnp.array([10.0, 20.0])}}
      >>> sa.vmap(lambda v: v["a"] + v["bar"]["b"].sum(), in_axes=(spec,))(value)
      Array([30., 31., 32.], dtype=float32)

    Source:
      https://docs.jax.dev/en/latest/_autosummary/jax.vmap.html
    """
    mapped = mapped_of(
        fn,
        in_axes,
        out_axes,
        axis_name=axis_name,
        axis_size=axis_size,
        spmd_axis_name=spmd_axis_name,
        like=like,
        **options,
    )

    @functools.wraps(fn, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        planned, leaves = mapped.plan(args, kwargs)
        arrays, output = mapped.run(planned, leaves)
        return output.rebuild(arrays)

    return call


_OPTIONS = tuple(inspect.signature(jax.vmap).parameters)[3:]


def mapped_of(
    fn: Callable[..., Any],
    in_axes: Any,
    out_axes: Any,
    *,
    axis_size: int | None = None,
    like: Any = None,
    **options: Any,
) -> Mapped:
    """Reads the arguments of `vmap`.

    Raises:
      RecordError: One of them cannot be read.
      BatchError: `fn` cannot be called, the size is none, or an option is unknown.
    """
    if not callable(fn) or isinstance(fn, Places):
        raise error(
            BatchError,
            f"vmap maps a function, not {with_article(short(fn))}.",
            Problem(kind="argument", path="fn", there=short(fn)),
            fixes=["sa.vmap(fn, in_axes=...)(value)"],
        )
    axis_size = checked_size(axis_size, BatchError)
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise error(
            BatchError,
            f"jax.vmap {jax.__version__} has no option {unknown[0]!r}.",
            Problem(kind="argument", path=unknown[0], there="no option of jax.vmap"),
            fixes=[f"the options are {', '.join(_OPTIONS)}"],
        )
    source = _provenance.caller()
    read = in_axes_of(in_axes, fn, source)
    check_form(like, read)
    return Mapped(
        fn=fn,
        in_axes=read,
        out_says=out_axes_of(out_axes, source),
        axis_size=axis_size,
        like=like,
        options={k: v for k, v in options.items() if v is not None},
    )
