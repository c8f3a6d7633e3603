"""`like`: the value of one example for each argument, in the form of `in_axes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from staged_axes._run.arguments import Argument, InAxes
from staged_axes._words.display import short
from staged_axes.errors import (
    BindError,
    Problem,
    RecordError,
    count,
    error,
    with_article,
)


def check_form(like: Any, in_axes: InAxes) -> None:
    """Refuses a `like` that does not have the form of `in_axes`.

    Raises:
      RecordError: It is no tuple of the same length, or no dict of the same names.
    """
    n = len(in_axes.entries)
    if like is None or in_axes.form in ("every", "only"):
        return
    if in_axes.form == "each":
        wanted = f"a tuple of {count(n, 'value')}, one for each argument"
        fits = isinstance(like, tuple | list) and len(like) == n
    else:
        wanted = "a dict with some of the same names"
        fits = isinstance(like, Mapping) and like.keys() <= in_axes.entries.keys()
    if not fits:
        raise error(
            RecordError,
            f"like has the form of in_axes: here {wanted}.",
            Problem(kind="argument", path="like", there=with_article(short(like))),
            fixes=["None stands for an argument that is not checked"],
        )


def templates(
    like: Any, in_axes: InAxes, arguments: Sequence[Argument], positional: int
) -> list[Any]:
    """The value of one example for each argument of a call, None where there is none.

    Args:
      like: In the form of `in_axes`.
      in_axes: Who says the axes.
      arguments: Those of the call.
      positional: How many of them are positional.

    Raises:
      BindError: There is one value for several arguments.
    """
    if in_axes.form == "name":
        return [like.get(a.name, like.get(a.name.split("[")[0])) for a in arguments]
    if in_axes.form != "each" and positional != 1:
        given = count(positional, "positional argument")
        raise error(
            BindError,
            f"like is the value of the only argument, and there are {given}.",
            Problem(kind="argument", path="like", there=with_article(short(like))),
            fixes=["one entry for each:  in_axes=(0, 0), like=(value, None)"],
        )
    each = like if in_axes.form == "each" else [like]
    names = [a.name for a in arguments[:positional]]
    if len(each) < positional:  # static arguments have no entry
        names = [name for name in names if name not in in_axes.static]
    by_name = dict(zip(names, each, strict=True))
    return [by_name.get(a.name) for a in arguments]
