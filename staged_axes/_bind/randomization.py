"""Domain randomisation as the environments of Brax and MuJoCo Playground take it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from staged_axes._bind.builder import AxesBuilder
from staged_axes._values.vary import vary
from staged_axes._words import provenance as _provenance
from staged_axes._words.display import short
from staged_axes.errors import Problem, RecordError, error, with_article


def randomization_fn(
    spec: AxesBuilder, draw: Callable[..., Mapping[Any, Any]]
) -> Callable[..., tuple[Any, Any]]:
    """The function `model -> (model_v, in_axes)` that a randomisation wrapper asks for.

    It has the name of the argument that takes it: `randomization_fn=` of Brax's
    `DomainRandomizationVmapWrapper`, `training.wrap` and `train`, and of the wrappers
    of MuJoCo Playground. What varies is said once, by `draw`; the axes are bound to the
    very model that the wrapper has, so later edits of the model do no harm.

    Args:
      spec: The record, to which `vary` writes what `draw` names and nobody decided.
      draw: From the model, and whatever else the function is called with (Brax gives
        `rng=`, a batch of keys), to the arrays of the places that vary, as for
        `AxesBuilder.vary`. Not compiled and not mapped: `jax.vmap` inside it is yours.

    Returns:
      The function. It works under `jit` too, where keys are traced: so values are drawn
      again at each reset and nothing is compiled again.

    Raises:
      RecordError: One of the two is something else.
      BindError: At the call: arrays, model and record do not fit; with every reason.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=None)
      >>> draw = lambda model: {"mass": model["mass"] * np.linspace(0.5, 2, 4)[:, None]}
      >>> randomise = sa.randomization_fn(spec, draw)
      >>> model_v, in_axes = randomise({"dt": 0.01, "mass": np.ones(3)})
      >>> model_v["mass"].shape, in_axes
      ((4, 3), {'dt': None, 'mass': 0})

    Source:
      https://github.com/google/brax/blob/main/brax/envs/wrappers/training.py
    """
    if not isinstance(spec, AxesBuilder) or not callable(draw):
        what, x = ("draw", draw) if isinstance(spec, AxesBuilder) else ("spec", spec)
        raise error(
            RecordError,
            "randomization_fn takes a builder and a function that draws, not "
            f"{with_article(short(x))}.",
            Problem(kind="argument", path=what, there=short(x)),
            fixes=["sa.randomization_fn(sa.AxesBuilder(default=None), draw)"],
        )
    # Who decides is the one who calls this, not the wrapper that calls back.
    stage, source = spec.__record__.current_stage(), _provenance.caller()

    @functools.wraps(draw)
    def randomise(model: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        arrays = draw(model, *args, **kwargs)
        model_v = vary(spec, model, arrays, None, stage, source)
        return model_v, spec.bind(model_v).in_axes

    return randomise
