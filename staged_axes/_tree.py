"""Flattening as `jax.vmap` does it, a node's children by step, its statics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.tree_util as jtu
import numpy as np
from attrs import fields as attrs_fields
from attrs import frozen
from attrs import has as is_attrs

from staged_axes._compat import node_class, node_data, treedef_nodes, vmappable_types
from staged_axes._paths import Index, Key, Name, Path, Step, item_step
from staged_axes.errors import BindError, Problem, error

Leaves = list[Any]


@frozen
class Child:
    """One child of a node: the step that JAX gives it, and the object."""

    step: Step
    value: Any
    is_named: bool


def flatten(value: Any) -> tuple[Leaves, Any]:
    """Leaves and treedef, with BCOO and other vmappable types kept as leaves.

    Raises:
      BindError: The value contains itself, or is nested too deep for JAX.
    """
    try:
        leaves, treedef = jtu.tree_flatten(value)
        if has_vmappable(treedef):
            leaves, treedef = jtu.tree_flatten(value, is_leaf=is_vmappable)
    except (RecursionError, SystemError):
        raise too_deep(value) from None
    return leaves, treedef


def too_deep(value: Any) -> BindError:
    """The error for a container that cannot be walked."""
    return error(
        BindError,
        "this value contains itself, or is nested too deep for JAX to walk.",
        Problem(kind="depth", path="value", there=type(value).__name__),
        fixes=["look for a container that was put into itself"],
    )


def has_vmappable(treedef: Any) -> bool:
    """Is a node of a type among it that `jax.vmap` takes as a leaf?"""
    types = vmappable_types()
    return bool(types) and any(
        node_class(row) in types
        for row in treedef_nodes(treedef)
        if node_class(row) is not None
    )


def is_vmappable(x: Any) -> bool:
    """Is it one leaf for `jax.vmap`, though it is a node for `jax.tree`?"""
    return type(x) in vmappable_types()


def key_paths(value: Any) -> tuple[tuple[Any, ...], ...]:
    """The path of each leaf in JAX's own keys, in flatten order."""
    # A look at each node from Python doubles the cost: only where one may be found.
    is_leaf = is_vmappable if vmappable_types() else None
    flat, _ = jtu.tree_flatten_with_path(value, is_leaf=is_leaf)
    return tuple(keys for keys, _ in flat)


def paths(value: Any) -> list[Path]:
    """The path of each leaf, in flatten order."""
    return [tuple(map(step_of, keys)) for keys in key_paths(value)]


def units(value: Any, is_unit: Callable[[Any], bool]) -> Iterator[tuple[Path, Any]]:
    """Path and object of each leaf, where `is_unit` tells what else is one."""
    flat, _ = jtu.tree_flatten_with_path(
        value, is_leaf=lambda x: is_vmappable(x) or is_unit(x)
    )
    for keys, x in flat:
        yield tuple(map(step_of, keys)), x


def step_of(key: Any) -> Step:
    """JAX's key entry as a step."""
    match key:
        case jtu.GetAttrKey():
            return Name(key.name)
        case jtu.SequenceKey():
            return Index(key.idx)
        case jtu.DictKey():
            return item_step(key.key)
        case jtu.FlattenedIndexKey():
            return Index(key.key)
    # A class may be registered with keys of any kind.
    plain = getattr(key, "name", getattr(key, "key", key))
    return Name(plain) if isinstance(plain, str) else item_step(plain)


def children(node: Any) -> list[Child]:
    """The children of one node, None among them; empty for a leaf."""
    if node is None or is_vmappable(node):
        return []
    flat, treedef = jtu.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
    if jtu.treedef_is_leaf(treedef):
        return []
    return [
        Child(step_of(key), x, not isinstance(key, jtu.FlattenedIndexKey))
        for (key,), x in flat
    ]


def is_node(x: Any) -> bool:
    """Does JAX look inside? An empty container and None are nodes too."""
    return not is_vmappable(x) and not jtu.all_leaves([x])


def attributes(node: Any) -> dict[str, Any]:
    """The data attributes of an object by name: declared fields, else its `vars`."""
    if is_attrs(type(node)):
        names = [f.name for f in attrs_fields(type(node))]
    elif hasattr(type(node), "__dataclass_fields__"):
        names = list(type(node).__dataclass_fields__)
    else:
        names = list(getattr(node, "__dict__", ()))
    return {name: getattr(node, name) for name in names if hasattr(node, name)}


def statics(node: Any, below: list[Child]) -> dict[str, Any]:
    """The static data of one node by name, as far as its class tells.

    Static is what is an attribute and no child. Where a class keeps its data in
    another way, there is one entry, the treedef's own data, named `(metadata)`.
    """
    if isinstance(node, tuple | list | dict) or any(_is_item(c.step) for c in below):
        return {}
    named = {c.step.name for c in below if isinstance(c.step, Name) and c.is_named}
    objects = [c.value for c in below if not c.is_named]
    found = {
        name: x
        for name, x in attributes(node).items()
        if name not in named and not any(x is o for o in objects)
    }
    hidden = node_data(treedef_nodes(jtu.tree_structure(node))[-1])
    is_empty = hidden is None or (isinstance(hidden, tuple) and not hidden)
    return found if found or is_empty else {"(metadata)": hidden}


def _is_item(step: Step) -> bool:
    """Is it a key of a dict or of something like a dict?"""
    return isinstance(step, Key) or (isinstance(step, Name) and step.is_item)


def nodes(value: Any) -> Iterator[tuple[Path, Any, list[Child]]]:
    """Every inner node with its path and children, parents first."""
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, node = stack.pop()
        if not is_node(node):
            continue
        below = children(node)
        yield path, node, below
        stack.extend(((*path, c.step), c.value) for c in reversed(below))


def traced_statics(value: Any, treedef: Any) -> list[tuple[Path, str]]:
    """Path and name of each static field that holds a tracer.

    Such a tracer comes from a transformation that may have ended; JAX would fail far
    from the cause, or serve a program that knows it.
    """
    data = [node_data(row) for row in treedef_nodes(treedef)]
    if not _holds_tracer([d for d in data if d is not None]):
        return []
    return [
        (path, name)
        for path, node, below in nodes(value)
        for name, x in statics(node, below).items()
        if _holds_tracer(x)
    ]


def _holds_tracer(x: Any, depth: int = 2) -> bool:
    """Is a tracer in it: among its leaves, or in an object of the user's among those?

    A class may wrap its static data in an object of its own, as equinox does.
    """
    return any(
        isinstance(leaf, jax.core.Tracer)
        or (depth > 0 and any(_holds_tracer(y, depth - 1) for y in _held(leaf)))
        for leaf in jtu.tree_leaves(x)
    )


def _held(x: Any) -> list[Any]:
    """What an opaque object has in its attributes; nothing for data and functions."""
    if isinstance(x, _PLAIN) or callable(x):
        return []
    slots = [n for cls in type(x).__mro__ for n in getattr(cls, "__slots__", ())]
    named = [getattr(x, n) for n in slots if isinstance(n, str) and hasattr(x, n)]
    return [*named, *getattr(x, "__dict__", {}).values()]


_PLAIN = (str, bytes, int, float, complex, np.ndarray, np.generic, jax.Array)
