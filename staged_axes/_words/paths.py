"""A place in a pytree: the steps that lead to it, its text form, the names near it.

A path is a plain tuple of steps and knows no data: it may have been written long
before the value exists.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import re
import unicodedata
from collections.abc import Hashable, Iterable
from typing import Any, TypeAlias

import numpy as np
from attrs import field, frozen

from staged_axes.errors import Problem, RecordError, error, with_article


@frozen
class Name:
    """A field `.x` or a string key `["x"]`; the two are one place."""

    name: str
    is_item: bool = field(default=False, eq=False)

    def __str__(self) -> str:
        plain = (
            self.name.isidentifier()
            and not keyword.iskeyword(self.name)
            and unicodedata.is_normalized("NFKC", self.name)  # as Python reads it
        )
        return f".{self.name}" if plain and not self.is_item else f"[{self.name!r}]"


@frozen
class Index:
    """A position `[2]` in a sequence, or an int key of a dict."""

    index: int

    def __str__(self) -> str:
        return f"[{self.index}]"


@frozen
class Span:
    """A slice `[:]` or `[1:3]`: several children of one node."""

    start: int | None = None
    stop: int | None = None
    step: int | None = None

    @property
    def is_all(self) -> bool:
        """Does it mean every child, whatever the container?"""
        return (self.start, self.stop, self.step) in {
            (None, None, None),
            (0, None, None),
            (None, None, 1),
            (0, None, 1),
        }

    def __str__(self) -> str:
        parts = ["" if x is None else str(x) for x in (self.start, self.stop)]
        return f"[{':'.join(parts + ([] if self.step is None else [str(self.step)]))}]"


@frozen
class Key:
    """A dict key that is neither a string nor an int, such as a tuple."""

    key: Hashable

    def __str__(self) -> str:
        try:
            return f"[{self.key!r}]"
        except Exception:  # a key of the user's may raise anything
            return f"[<{type(self.key).__name__}>]"


_FLAT_INDEX = re.compile(r"\[<flat index (\d+)>\]")

Step: TypeAlias = Name | Index | Span | Key
Path: TypeAlias = tuple[Step, ...]


def code(path: Iterable[Step], root: str = "spec") -> str:
    """The path as code that works when it is pasted.

    Example:
      >>> code((Name("layers"), Index(2), Name("w")))
      'spec.layers[2].w'
    """
    return root + "".join(map(str, path))


def words(path: Iterable[Step]) -> tuple[Any, ...]:
    """The path as plain keys, as nnx filters and rules see it: `("layers", 2, "w")`."""
    return tuple(
        step.name
        if isinstance(step, Name)
        else step.index
        if isinstance(step, Index)
        else step.key
        if isinstance(step, Key)
        else str(step)
        for step in path
    )


def item_step(item: Any) -> Step:
    """The step that `spec[item]` takes.

    Raises:
      RecordError: The item cannot be a key or an index.
    """
    match item:
        case str():
            return Name(str.__str__(item), is_item=True)
        case bool() | np.bool_():
            return Key(bool(item))
        case int() | np.integer():
            return Index(int(item))
        case slice():
            bounds = (item.start, item.stop, item.step)
            if all(b is None or isinstance(b, int | np.integer) for b in bounds):
                return Span(*(b if b is None else int(b) for b in bounds))
        case Hashable():
            try:
                hash(item)
            except TypeError:
                pass
            else:
                return Key(item)
    raise error(
        RecordError,
        f"{with_article(type(item).__name__)} cannot name a place: it is no key, index "
        "or slice.",
        Problem(kind="path", path="spec[...]", there=type(item).__name__),
        fixes=['spec["name"], spec[2], spec[:] or spec.name'],
    )


def parse(text: str) -> Path:
    """Reads a path as it is written in code: `layers[2].w`, `params['world'].mass`.

    The form that `jax.tree_util.keystr` prints is read too.

    Raises:
      RecordError: The text is no path; the message points at the column.

    Example:
      >>> [str(step) for step in parse("params['world'].mass")]
      ['.params', "['world']", '.mass']
    """
    if not isinstance(text, str):
        raise _no_text(text)
    cleaned = _FLAT_INDEX.sub(r"[\1]", text)
    lead = "" if cleaned.lstrip()[:1] in ("", ".", "[") else "."
    source = f"_{lead}{cleaned}".rstrip()
    try:
        tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        column = (getattr(e, "offset", None) or 1) - 1 - len(lead)
        raise _bad_path(text, max(column, 1)) from None
    if tree.end_col_offset != len(source.encode()):
        raise _bad_path(text, (tree.end_col_offset or 0) - len(lead))
    steps: list[Step] = []
    while not (isinstance(tree, ast.Name) and tree.id == "_"):
        if isinstance(tree, ast.Attribute):
            steps.append(Name(tree.attr))
        elif isinstance(tree, ast.Subscript):
            steps.append(_subscript(tree.slice, text, len(lead)))
        else:
            raise _bad_path(text, 1)
        tree = tree.value
    return tuple(reversed(steps))


def _subscript(node: ast.expr, text: str, lead: int) -> Step:
    """The step inside `[...]`."""
    try:
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper, node.step)
            item: Any = slice(*(b and ast.literal_eval(b) for b in bounds))
        else:
            item = ast.literal_eval(node)
        return item_step(item)
    except (ValueError, TypeError):
        raise _bad_path(text, node.col_offset - lead) from None


def _no_text(text: Any) -> RecordError:
    """The error for a path that is no text."""
    return error(
        RecordError,
        f"a path is a text, not {with_article(type(text).__name__)}.",
        Problem(kind="path", path="path", there=type(text).__name__),
        fixes=['"layers[2].w", "params[\'world\'].mass" or "[0].x"'],
    )


def _bad_path(text: str, column: int) -> RecordError:
    """The error for a text that is no path."""
    return error(
        RecordError,
        f"{text[:80]!r} is no path into a value (column {column}).",
        Problem(
            kind="path", path=text[:80], there=f"cannot be read from column {column} on"
        ),
        fixes=['"layers[2].w", "params[\'world\'].mass" or "[0].x"'],
    )


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The names most like `name`, best first.

    Example:
      >>> nearest("darg", ["radius", "drag", "label"])
      ['drag']
    """
    pool = [n for n in names if isinstance(n, str)]
    folded = {n.lower(): n for n in reversed(pool)}
    close = difflib.get_close_matches(name.lower(), folded, n=count, cutoff=0.6)
    return [folded[n] for n in close]
