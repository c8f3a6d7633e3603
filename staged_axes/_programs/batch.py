"""`batch`: `vmap` and `jit` over the flat leaves, one program for each structure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from staged_axes._programs.batched import BatchedFunction
from staged_axes._programs.calls import (
    Donated,
)
from staged_axes._run.vmap import mapped_of
from staged_axes._words.display import short
from staged_axes._words.paths import nearest
from staged_axes.errors import BatchError, Problem, error

_JIT_OPTIONS = ("keep_unused", "inline", "device", "backend", "compiler_options")


def batch(
    fn: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    like: Any = None,
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Iterable[str] = (),
    static_argnames: str | Iterable[str] = (),
    max_programs: int = 256,
    warn_after: int | None = 8,
    **jit_options: Any,
) -> BatchedFunction:
    """Maps and compiles a function, with one program for each structure of its input.

    As `jax.jit(jax.vmap(fn, ...))`, but static data never has to match an axes tree, is
    told apart by its types too, may be arrays, lists and dicts, and costs a trace but
    no compile where the function does not read it. A wrapper made again for the same
    function finds the programs that are there.

    Args:
      fn: The function of one example.
      in_axes: As in `vmap`.
      out_axes: As in `vmap`.
      axis_name: As in `vmap`.
      axis_size: As in `vmap`.
      spmd_axis_name: As in `vmap`.
      like: As in `vmap`; looked at only where a structure or a shape is new.
      donate_argnums: Positional arguments whose buffers the program may reuse.
      donate_argnames: The same by name.
      static_argnames: Parameters that are kept as Python values: part of the key,
        never traced. Whether they are given by position or name, they need no entry in
        `in_axes`.
      max_programs: How many structures are kept, each with one signature; the one not
        used for longest is dropped.
      warn_after: Warn once when one field alone has made this many programs; None for
        no warning.
      **jit_options: Other options of `jax.jit`: `keep_unused`, `inline`, ...

    Returns:
      The function over batches. A shared leaf that is no array (a string, a function,
      an object) is part of the key; a Python number is traced, as `jax.jit` does,
      unless its place is `STATIC`.

    Raises:
      RecordError: `in_axes` or `out_axes` cannot be read.
      BatchError: Another argument cannot be used.
      BindError: At the call: arguments and axes do not fit; with every reason.

    Example:
      >>> import jax.numpy as jnp, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.gain = None
      >>> fast = sa.batch(lambda v: v["x"] * v["gain"], in_axes=(spec,))
      >>> fast({"x": jnp.arange(3.0), "gain": 2.0})
      Array([0., 2., 4.], dtype=float32)
      >>> fast.cache_info().programs
      1
    """
    mapped = mapped_of(
        fn,
        in_axes,
        out_axes,
        axis_name=axis_name,
        axis_size=axis_size,
        spmd_axis_name=spmd_axis_name,
        like=like,
    )
    signature = mapped.in_axes.signature
    static = _names(static_argnames, signature, "static_argnames")
    donated = Donated(
        _names(donate_argnames, signature, "donate_argnames"),
        _numbers(donate_argnums, signature),
    )
    _check_options(jit_options, max_programs, warn_after)
    return BatchedFunction(
        evolve(mapped, in_axes=evolve(mapped.in_axes, static=static)),
        donated,
        jit_options,
        max_programs,
        warn_after,
    )


def _names(
    names: str | Iterable[str], signature: inspect.Signature | None, label: str
) -> frozenset[str]:
    """The names of parameters, as `jax.jit` takes them.

    Raises:
      BatchError: One is no parameter.
    """
    several = (names,) if isinstance(names, str) else names
    if not isinstance(several, Iterable) or not all(
        isinstance(name, str) for name in several
    ):
        raise error(
            BatchError,
            f"{label} takes names of parameters, not {short(names)}.",
            Problem(kind="argument", path=label, there=short(names)),
            fixes=[f'{label}="name", or {label}=("one", "other")'],
        )
    given = frozenset(several)
    parameters = signature.parameters if signature else {}
    is_open = not signature or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if is_open else sorted(given - set(parameters))
    if unknown:
        like = nearest(unknown[0], parameters)
        raise error(
            BatchError,
            f"{label} names what is no parameter: {', '.join(unknown)}.",
            *(
                Problem(
                    kind="argument",
                    path=f"{label}={name!r}",
                    there=f"the parameters are {', '.join(parameters)}",
                )
                for name in unknown
            ),
            fixes=[f"did you mean {like[0]!r}?"] if like else [],
        )
    return given


def _numbers(numbers: Any, signature: inspect.Signature | None) -> frozenset[int]:
    """The numbers of positional arguments, as `jax.jit` takes them.

    Raises:
      BatchError: One is no such number.
    """
    several = numbers if isinstance(numbers, Iterable) else (numbers,)
    parameters = signature.parameters.values() if signature else ()
    is_open = not signature or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    most = sum(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters
    )
    given = list(several)
    for n in given:
        is_int = isinstance(n, int) and not isinstance(n, bool)
        if not is_int or not (is_open or -most <= n < most):
            raise error(
                BatchError,
                "donate_argnums takes numbers of positional arguments, not "
                f"{short(n)}.",
                Problem(
                    kind="argument",
                    path="donate_argnums",
                    there=f"{n!r:.40}",
                    asked="" if is_open else f"the function has {most}",
                ),
                fixes=["donate_argnums=0, or donate_argnames='name'"],
            )
    return frozenset(given)


def _check_options(
    options: Mapping[str, Any], max_programs: int, warn_after: int | None
) -> None:
    """Refuses options that the flat program cannot have.

    Raises:
      BatchError: An option is unknown, or makes no sense here.
    """
    unknown = [name for name in options if name not in _JIT_OPTIONS]
    if unknown:
        raise error(
            BatchError,
            f"batch does not take {', '.join(unknown)}.",
            *(Problem(kind="argument", path=name) for name in unknown),
            fixes=[
                "static arguments go by name: static_argnames",
                f"of jax.jit's other options it takes {', '.join(_JIT_OPTIONS)}",
            ],
        )
    if isinstance(max_programs, bool) or not (
        isinstance(max_programs, int) and max_programs > 0
    ):
        raise error(
            BatchError,
            f"max_programs is how many are kept, at least 1, not {max_programs!r:.40}.",
            Problem(
                kind="argument", path="max_programs", there=repr(max_programs)[:40]
            ),
        )
    if warn_after is not None and (
        isinstance(warn_after, bool) or not isinstance(warn_after, int)
    ):
        raise error(
            BatchError,
            "warn_after is how many programs one field may make, or None, not "
            f"{short(warn_after)}.",
            Problem(kind="argument", path="warn_after", there=short(warn_after)),
        )
