"""Places and leaves named by text: `at`, `record` and `rule`."""

from __future__ import annotations

import re
from typing import Any

from staged_axes._record.axes import Optional
from staged_axes._record.decisions import pattern_text
from staged_axes._record.placeholders import Placeholder, Places, decide, walk
from staged_axes._words.display import short
from staged_axes._words.paths import code, parse
from staged_axes.errors import Problem, RecordError, error, with_article


def at(spec: Places, path: str) -> Placeholder:
    """The place that a text names, also where the builder uses the name itself.

    Args:
      spec: A builder or a place of one.
      path: A path as in code: `"bind"`, `"layers[2].w"`, `"params['world'].mass"`.

    Raises:
      RecordError: The text is no path, or a declared class has no such field.

    Example:
      >>> import staged_axes as sa
      >>> spec = sa.AxesBuilder(default=None)
      >>> sa.at(spec, "bind").x = 0
      >>> sa.at(spec, "bind").x
      <place spec.bind.x>
    """
    return walk(_builder(spec), parse(path))


def record(spec: Places, path: str, axis: Any) -> None:
    """Records a decision by the text of its path, as configuration files need it.

    Args:
      spec: A builder or a place of one.
      path: A path as in code, or as `jax.tree_util.keystr` prints it. The empty text
        is the place itself.
      axis: What `spec.x = axis` takes.

    Raises:
      RecordError: The text is no path, or the axis is none.
      ConflictError: Another stage decided the place differently.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> sa.record(spec, "wheel.drag", None)
      >>> spec.bind({"wheel": {"drag": np.ones(2), "radius": np.ones(3)}}).leaf_axes
      (None, 0)
    """
    decide(walk(_builder(spec), parse(path)), axis)


def rule(spec: Places, pattern: Any, axis: Any) -> None:
    """Decides for every leaf that a pattern matches.

    Paths beat rules, rules beat the default. Within a stage the later rule wins;
    across stages, rules that disagree on a leaf are a conflict when a value is bound.

    Args:
      spec: A builder, or a place of one under which the rule holds.
      pattern: One of

        - a glob over the path with `/` between the steps: `"**/kernel"`,
          `"layers/*/w"`. It may match a leaf or a node above it.
        - a compiled regular expression, searched for in that same text.
        - a function `(path, leaf) -> bool`, with the path as a tuple of keys.
        - an nnx filter: `nnx.Param`, `nnx.PathContains("kernel")`, `...`.
      axis: What `spec.x = axis` takes.

    Raises:
      RecordError: The pattern or the axis is none.

    Example:
      >>> import numpy as np, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=None)
      >>> sa.rule(spec, "**/kernel", 0)
      >>> layer = {"bias": np.ones(2), "kernel": np.ones((3, 2))}
      >>> spec.bind({"a": layer, "b": layer}).leaf_axes
      (None, 0, None, 0)

    Source:
      The filters are those of
      https://flax.readthedocs.io/en/latest/guides/filters_guide.html
    """
    spec = _builder(spec)
    optional = isinstance(axis, Optional)
    payload = axis.payload if isinstance(axis, Optional) else axis
    place = f"sa.rule({code(spec.__path__)}, {pattern_text(pattern)})"
    if isinstance(payload, Places):
        raise error(
            RecordError,
            "a rule decides an axis; a builder is mounted at a place.",
            Problem(kind="payload", path=place, there="a builder"),
            fixes=["spec.place = other_builder"],
        )
    _check_pattern(pattern)
    spec.__record__.add_rule(
        pattern,
        spec.__record__.form.check(payload, place, "axis"),
        optional=optional,
        under=spec.__path__,
    )


def _builder(spec: Any) -> Places:
    """`spec`, where it is a builder or a place of one."""
    if isinstance(spec, Places):
        return spec
    raise error(
        RecordError,
        "decisions are recorded in a builder or a place of one, not in "
        f"{with_article(short(spec))}.",
        Problem(kind="argument", path="spec", there=short(spec)),
        fixes=["spec = sa.AxesBuilder(default=0)"],
    )


def _is_pattern(x: Any) -> bool:
    """Is it a glob, an expression over text, a function, or a filter of nnx?"""
    if isinstance(x, re.Pattern):
        return isinstance(x.pattern, str)
    if isinstance(x, tuple | list):
        return all(part is None or _is_pattern(part) for part in x)
    is_filter = type(x).__module__.startswith("flax.nnx")
    return (
        isinstance(x, str | bool | type)
        or x is ...
        or is_filter
        or (callable(x) and not isinstance(x, Places))
    )


def _check_pattern(pattern: Any) -> None:
    """Refuses what can be no pattern."""
    if _is_pattern(pattern):
        return
    raise error(
        RecordError,
        "a rule's pattern is a glob, a compiled regular expression, a function or an "
        f"nnx filter, not {with_article(short(pattern))}.",
        Problem(kind="pattern", path="sa.rule(spec, ...)", there=short(pattern)),
        fixes=['sa.rule(spec, "**/kernel", 0)'],
    )
