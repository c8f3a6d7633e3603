"""Things that are written down by the name under which they can be imported."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any


def name_of(x: Any) -> str | None:
    """The shortest `module:qualname` that gives `x` back; None if there is none.

    What a script or a notebook defines is not importable: in another program
    `__main__` is another module.

    Example:
      >>> import collections.abc
      >>> name_of(collections.abc.Mapping.get), name_of(lambda: 0)
      ('collections.abc:Mapping.get', None)
    """
    if x is ...:
        return "builtins:Ellipsis"
    module = getattr(x, "__module__", None)
    qualname = getattr(x, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        return None
    if module == "__main__":
        return None
    # A package that exports what a module of it defines is the name to be kept.
    steps = module.split(".")
    for depth in range(1, len(steps) + 1):
        home = ".".join(steps[:depth])
        found = sys.modules.get(home)
        for step in qualname.split("."):
            found = getattr(found, step, None)
        if found is x or (inspect.ismethod(found) and found == x):
            return f"{home}:{qualname}"
    return None


def named(name: str) -> Any:
    """What a `module:qualname` stands for; the module is imported.

    Raises:
      LookupError: It cannot be imported, for any reason.
    """
    module, _, qualname = name.partition(":")
    if not module or not qualname:
        message = f"{name!r} is not of the form 'module:name'"
        raise LookupError(message)
    try:
        found: Any = importlib.import_module(module)
        for step in qualname.split("."):
            found = getattr(found, step)
    except Exception as e:  # importing a user's module may raise anything
        message = f"{name!r} cannot be imported: {e}"
        raise LookupError(message) from e
    return found
