"""Programs ahead of time: lowered and compiled, called with the user's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from staged_axes._programs.programs import Entry, Refused
from staged_axes.errors import BatchError, error

Fits = Callable[[Entry, tuple[Any, ...], dict[str, Any]], list[Any]]


class Lowered:
    """A lowered program; made by `BatchedFunction.lower`.

    It has all that the `jax.stages.Lowered` of the flat program has.
    """

    def __init__(self, fits: Fits, entry: Entry, lowered: Any) -> None:
        self._fits = fits
        self._entry = entry
        self._lowered = lowered

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lowered, name)

    def compile(self, *args: Any, **kwargs: Any) -> Compiled:
        """Compiles it; takes what `jax.stages.Lowered.compile` takes."""
        return Compiled(self._fits, self._entry, self._lowered.compile(*args, **kwargs))


class Compiled:
    """A compiled program for one structure and one signature of inputs.

    It has all that the `jax.stages.Compiled` of the flat program has.
    """

    def __init__(self, fits: Fits, entry: Entry, compiled: Any) -> None:
        self._fits = fits
        self._entry = entry
        self._compiled = compiled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program.

        Raises:
          BatchError: It was compiled for other inputs, with the fields that differ; or
            what the function saw was changed in place since.
        """
        own = self._entry.own
        inputs = self._entry.inputs(self._fits(self._entry, args, kwargs))
        try:
            own.check(inputs)
        except Refused:
            raise error(
                BatchError,
                "static data that the function saw was changed in place since, and a "
                "callback or the output still refers to it.",
                fixes=["lower and compile it again"],
            ) from None
        return own.finish(self._compiled(*inputs))
