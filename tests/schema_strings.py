"""Classes whose annotations are all strings, for test_schema."""

# The older ways to write annotations must be understood as well.
# ruff: noqa: UP037, UP045

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final, NamedTuple, Optional, TypedDict

import attrs

if TYPE_CHECKING:
    import not_there


@dataclasses.dataclass
class Node:
    wheel: Wheel
    wheels: list[Wheel]
    own: "Optional[Wheel]"
    child: Node | None
    fixed: Final[int]


@dataclasses.dataclass
class Wheel:
    drag: float


@dataclasses.dataclass
class Hidden:
    Wheel: Wheel = 3


def local_dataclass():
    """A class that nobody can find by name."""

    class Local:
        pass

    @dataclasses.dataclass
    class Node:
        known: int
        unknown: Local
        missing: not_there.Thing
        again: Node | None

    return Node


def local_attrs():
    """The same with attrs."""

    class Local:
        pass

    @attrs.frozen
    class Node:
        known: int
        unknown: list[Local]
        missing: not_there.Thing
        again: Optional[Node]

    return Node


def local_namedtuple():
    """The same as a named tuple."""

    class Local:
        pass

    class Node(NamedTuple):
        known: int
        unknown: Local
        missing: not_there.Thing
        again: Optional[Node]

    return Node


def local_typed_dict():
    """The same as a typed dict."""

    class Local:
        pass

    class Node(TypedDict):
        known: int
        unknown: Local
        missing: not_there.Thing
        again: Optional[Node]

    return Node
