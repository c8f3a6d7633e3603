"""The patterns of rules: which leaves of a value a glob, regex or filter means."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from staged_axes._structure import tree as _tree
from staged_axes._words.paths import words


def texts_of(node: Any) -> list[str]:
    """The leaves as globs and regular expressions see them: `layers/2/w`."""
    return ["/".join(map(str, words(path))) for path in _tree.paths(node)]


def matching(
    pattern: Any, node: Any, texts: Callable[[], list[str]] | None = None
) -> list[int]:
    """The leaves of the node, by number, that the pattern means.

    Args:
      pattern: That of a rule.
      node: The value, or a node of it.
      texts: Gives what `texts_of` gives for the node, where somebody remembers it.
    """
    if is_by_path(pattern):
        finds = pattern.search if isinstance(pattern, re.Pattern) else _glob(pattern)
        known = texts() if texts else texts_of(node)
        return [i for i, text in enumerate(known) if finds(text)]
    if is_nnx_filter(pattern):
        return _by_filter(pattern, node)
    return [
        i
        for i, (path, leaf) in enumerate(_tree.leaves_by_path(node))
        if pattern(words(path), leaf)
    ]


def is_by_path(pattern: Any) -> bool:
    """Does the pattern read paths alone, and no leaf?"""
    return isinstance(pattern, str | re.Pattern)


def is_structural(pattern: Any) -> bool:
    """Does it mean the same leaves in all values of one treedef?

    Paths do, and filters of nnx that go by path, class and tag; functions may not.
    """
    if is_by_path(pattern) or isinstance(pattern, type | bool | int | None):
        return True
    if isinstance(pattern, tuple | list | frozenset):
        return all(map(is_structural, pattern))
    if type(pattern).__module__.startswith("flax.nnx"):
        return all(map(is_structural, vars(pattern).values()))
    return pattern is ...


@functools.lru_cache(maxsize=256)
def _glob(pattern: str) -> Callable[[str], Any]:
    """A glob as a matcher of the text of a leaf, or of the beginning that is a node's.

    `**` takes any steps, `*` none of the `/`.
    """
    parts = []
    pattern = re.sub(r"\*\*(/\*\*)+", "**", pattern)
    for part in re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?|\[!?[^\]]+\])", pattern):
        match part:
            case "**/":
                parts.append("(?:.*/)?")
            case "/**":
                parts.append("(?:/.*)?")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case _ if part.startswith("[") and part.endswith("]"):
                parts.append(_one_of(part[1:-1]))
            case _:
                parts.append(re.escape(part))
    below = "(?:/.*)?" if pattern else ".*"
    return re.compile("".join([*parts, below]), re.DOTALL).fullmatch


def _one_of(chars: str) -> str:
    """What stands in `[...]` of a glob, or after its `!`, as a regular expression."""
    ranges = re.findall("(.)-(.)|(.)", chars.removeprefix("!"), re.DOTALL)
    known = "".join(
        f"{re.escape(first)}-{re.escape(last)}" if first else re.escape(one)
        for first, last, one in ranges
        if first <= last
    )
    if chars.startswith("!"):
        return f"(?!/)[^{known}]" if known else "[^/]"
    return f"[{known}]" if known else "(?!)"


def is_nnx_filter(pattern: Any) -> bool:
    """Is it a filter in the sense of nnx, and no plain function?"""
    if isinstance(pattern, FunctionType | functools.partial) or inspect.ismethod(
        pattern
    ):
        return False
    return (
        isinstance(pattern, type | bool | list | tuple)
        or pattern is ...
        or type(pattern).__module__.startswith("flax.nnx")
    )


def _by_filter(pattern: Any, node: Any) -> list[int]:
    """The leaves below the variables (or the leaves) that an nnx filter takes."""
    from flax.nnx import filterlib

    predicate = filterlib.to_predicate(pattern)
    found: list[int] = []
    start = 0
    for path, unit in _tree.units(node, _is_variable):
        count = len(_tree.flatten(unit)[0])
        if predicate(words(path), unit):
            found.extend(range(start, start + count))
        start += count
    return found


def _is_variable(x: Any) -> bool:
    """Is it an nnx variable, or the state of one?"""
    # Not by `getattr`: newer versions of nnx answer to the old name, with a warning.
    nnx = vars(sys.modules.get("flax.nnx", object))
    kinds = [nnx.get(name) for name in ("Variable", "VariableState")]
    return isinstance(x, tuple(k for k in kinds if isinstance(k, type)))
