"""JSON in which every value knows its line and column, for errors that point at it.

In comes text, out go `Located` values, and a `Reader` that gathers everything that is
wrong with them, to be raised at once. It knows nothing of records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from attrs import define, field, frozen

from staged_axes._words.paths import nearest
from staged_axes.errors import Problem, RecordError, error

Token: TypeAlias = "re.Match[str]"

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
WIDTH = 100
_WORDS = {
    str: "a string",
    int: "an int",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    float: "a float",
    type(None): "null",
}


@frozen
class Located:
    """A JSON value and the place of its first character.

    Attributes:
      value: A scalar, a list of `Located`, or a dict of `Located`.
      offset: How many characters of the text come before it.
      keys: For a dict, the offsets of its keys.
    """

    value: Any
    offset: int
    keys: Mapping[str, int] = field(factory=dict, repr=False)

    def plain(self) -> Any:
        """The value as `json.loads` would give it."""
        if isinstance(self.value, dict):
            return {key: member.plain() for key, member in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    return _WORDS[type(value)]


@define
class Reader:
    """Reads a text and gathers what is wrong in it."""

    text: str
    what: str
    problems: list[Problem] = field(factory=list)

    def read(self) -> Located:
        """The whole text.

        Raises:
          RecordError: It is no JSON.
        """
        try:
            json.loads(self.text)
            tokens = _TOKEN.finditer(self.text)
            return self._located(next(tokens), tokens)
        except json.JSONDecodeError as e:
            self.fault(e.pos, e.msg)
        except RecursionError:
            self.fault(0, "nested too deeply")
        except ValueError as e:
            self.fault(0, str(e))
        raise self.error()

    def _located(self, first: Token, rest: Iterator[Token]) -> Located:
        """The value that starts with a token, of a text that is known to be JSON."""
        if first[0] == "[":
            items = [self._located(token, rest) for token in _up_to_end(rest)]
            return Located(items, first.start())
        if first[0] != "{":
            return Located(json.loads(first[0]), first.start())
        members: dict[str, Located] = {}
        keys: dict[str, int] = {}
        for token in _up_to_end(rest):
            key = json.loads(token[0])
            if key in keys:
                self.fault(token.start(), f"{key!r} is here a second time")
            next(rest)  # the colon
            members[key] = self._located(next(rest), rest)
            keys[key] = token.start()
        return Located(members, first.start(), keys)

    def fault(self, at: Located | int, there: str, fix: str = "") -> None:
        """Takes down one thing that is wrong."""
        offset = at if isinstance(at, int) else at.offset
        line = self.line(at)
        column = offset - self.text.rfind("\n", 0, offset)
        place = f"line {line}, column {column}"
        self.problems.append(
            Problem(kind="json", path=place, there=there, line=line, fix=fix)
        )

    def line(self, at: Located | int) -> int:
        """The line of a place, the first being 1."""
        offset = at if isinstance(at, int) else at.offset
        return self.text.count("\n", 0, offset) + 1

    def error(self) -> RecordError:
        """The error for all that is wrong."""
        n = len(self.problems)
        count = "1 thing is" if n == 1 else f"{n} things are"
        return error(
            RecordError, f"the text is no {self.what}: {count} wrong.", *self.problems
        )

    def members(
        self, node: Located, known: Mapping[str, Any], required: Collection[str] = ()
    ) -> dict[str, Located]:
        """The members of an object that are known and of the right type.

        Args:
          node: What should be an object.
          known: The type of each member, `object` where it may be anything.
          required: The members that must be there.
        """
        if not self.has_type(node, dict):
            return {}
        for name in required:
            if name not in node.value:
                self.fault(node, f"{name!r} is missing")
        found = {}
        for name, member in node.value.items():
            if name not in known:
                like = nearest(name, known, 1)
                fix = f'did you mean "{like[0]}" ?' if like else ""
                self.fault(node.keys[name], f"unknown key {name!r}", fix)
            elif known[name] is object or self.has_type(member, known[name]):
                found[name] = member
        return found

    def has_type(self, node: Located, wanted: type) -> bool:
        """Whether a value is of a type; takes it down if not."""
        if type(node.value) is wanted:
            return True
        self.fault(node, f"{kind(node.value)} instead of {_WORDS[wanted]}")
        return False


def _up_to_end(tokens: Iterator[Token]) -> Iterator[Token]:
    """The first tokens of the items of a list, or the keys of an object."""
    for token in tokens:
        if token[0] in ("]", "}"):
            return
        if token[0] != ",":
            yield token


def layout(value: Any, indent: str = "") -> str:
    """JSON with an item a line in long lists, and an object without lists on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if not _has_list(value) or len(indent) + len(flat) <= WIDTH:
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        lines = [inner + layout(item, inner) for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    if isinstance(value, dict):
        lines = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {layout(item, inner)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return flat


def _has_list(value: Any) -> bool:
    """Whether there is a list anywhere in plain data."""
    if isinstance(value, dict):
        return any(map(_has_list, value.values()))
    return isinstance(value, list)
