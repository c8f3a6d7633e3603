"""The filters of flax's nnx as JSON, and back.

A class or a function is `{"name": "module:qualname"}`, an instance of one of nnx's own
classes of filters `{"nnx": "PathContains", "key": "kernel"}`; strings (tags), true,
false, null and lists stand for themselves. flax is imported only to make a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from staged_axes._json.text import Located, Reader, kind

FIELDS: Mapping[str, Mapping[str, Any]] = {
    "WithTag": {"tag": str},
    "PathContains": {"key": object, "exact": bool},
    "PathIn": {"paths": list},
    "OfType": {"type": dict},
    "Any": {"predicates": list},
    "All": {"predicates": list},
    "Not": {"predicate": object},
    "Everything": {},
    "Nothing": {},
}
_REQUIRED = {
    name: [f for f in fields if f != "exact"] for name, fields in FIELDS.items()
}


def write_filter(x: Any, name: Callable[[Any], str | None]) -> Any:
    """A filter, or a part of one, as plain data.

    Args:
      x: The filter.
      name: Gives the name under which something can be imported.
    """
    if x is None or isinstance(x, str | int | float):
        return x
    if isinstance(x, list | tuple):
        return [write_filter(part, name) for part in x]
    if isinstance(x, frozenset):  # the paths of PathIn
        return [write_filter(part, name) for part in sorted(x, key=repr)]
    cls = type(x)
    if cls.__name__ not in FIELDS or not cls.__module__.startswith("flax.nnx"):
        return {"name": name(x)}
    fields = {
        field: write_filter(part, name)
        for field, part in vars(x).items()
        if getattr(cls, field, ...) != part
    }
    return {"nnx": cls.__name__} | fields


def read_filter(
    node: Located, reader: Reader, named: Callable[[Located, str], Any]
) -> Any:
    """A filter, or a part of one; what is wrong goes to the reader.

    Args:
      node: What the text holds.
      reader: Takes down what is wrong.
      named: Gives what a name in the text stands for, if it is `"a class"`, or what
        else is asked for.
    """
    value = node.value
    if isinstance(value, list):
        return tuple(read_filter(part, reader, named) for part in value)
    if not isinstance(value, dict):
        if isinstance(value, int | float) and not isinstance(value, bool):
            reader.fault(node, f"{kind(value)} is no nnx filter")
        return value
    if "nnx" not in value:
        return _by_name(node, reader, named, "a filter")
    name = value["nnx"]
    if not isinstance(name.value, str) or name.value not in FIELDS:
        fix = f"the filters are {', '.join(FIELDS)}"
        reader.fault(name, f"no nnx filter: {name.plain()!r:.40}", fix)
        return None
    known, required = FIELDS[name.value], _REQUIRED[name.value]
    members = reader.members(node, {"nnx": str, **known}, required)
    if any(field not in members for field in required):
        return None
    parts = {f: _part(f, members[f], reader, named) for f in known if f in members}
    return _make(name.value, parts, node, reader)


def _make(name: str, parts: Mapping[str, Any], node: Located, reader: Reader) -> Any:
    """An instance of one of nnx's own classes of filters."""
    try:
        from flax.nnx import filterlib

        cls: Any = getattr(filterlib, name)
        if hasattr(cls, "__dataclass_fields__"):
            return cls(**parts)
        return cls(*chain.from_iterable(parts.values()))
    except ImportError as e:
        reader.fault(node, f"flax.nnx cannot be imported: {e}")
        return None
    except TypeError as e:  # this flax's class lacks a field, or a part is no filter
        reader.fault(node, f"{name} of this flax does not take that: {e}")
        return None


def _part(
    field: str, node: Located, reader: Reader, named: Callable[[Located, str], Any]
) -> Any:
    """One field of a filter, as its class takes it: the last two are spread."""
    match field:
        case "key":
            return _hashable(node)
        case "type":
            return _by_name(node, reader, named, "a class")
        case "paths":
            return tuple(map(_hashable, node.value))
        case "predicates":
            return read_filter(node, reader, named)
        case "predicate":
            return (read_filter(node, reader, named),)
    return node.value


def _by_name(
    node: Located, reader: Reader, named: Callable[[Located, str], Any], what: str
) -> Any:
    """What stands as an object with a name."""
    members = reader.members(node, {"name": str}, ("name",))
    return named(members["name"], what) if members else None


def _hashable(node: Located) -> Any:
    """A key, or a path of keys: JSON's lists stand for tuples."""
    if isinstance(node.value, list):
        return tuple(map(_hashable, node.value))
    return node.plain()
