"""Flattening as `jax.vmap` does it, a node's children by step, its statics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeAlias

import jax.tree_util as jtu
from attrs import fields as attrs_fields, frozen, has as is_attrs

from staged_axes._compat import node_class, node_data, treedef_nodes, vmappable_types
from staged_axes._structure.depth import is_too_deep
from staged_axes._words.paths import (
    Index,
    Key,
    Name,
    Path,
    Step,
    code,
    item_step,
    words,
)
from staged_axes.errors import BindError, Problem, error

Leaves: TypeAlias = list[Any]
KeyPaths: TypeAlias = tuple[tuple[Any, ...], ...]


@frozen(slots=False, eq=False)
class Children:
    """The children of one node: what JAX's key for each holds, and the object.

    Attributes:
      words: A name, an index or a dict key for each.
      values: The objects.
      is_item: Are they items of a mapping, rather than fields?
      is_named: Did the class give keys to its children?
    """

    words: Sequence[Any] = ()
    values: Sequence[Any] = ()
    is_item: bool = False
    is_named: bool = True

    def __len__(self) -> int:
        return len(self.words)

    def step(self, i: int) -> Step:
        """The step that leads to one of them."""
        return _step(self.words[i], self.is_item)

    @property
    def steps(self) -> list[Step]:
        """The step that leads to each."""
        return [_step(word, self.is_item) for word in self.words]

    @cached_property
    def are_indexed(self) -> bool:
        """Does an index lead to each? Dict keys that are ints are none."""
        return not self.is_item and all(isinstance(word, int) for word in self.words)

    def at(self, step: Step) -> list[int]:
        """The positions of the children to which this very step leads."""
        if len(self._positions) < len(self):  # a class that uses a key twice
            return [i for i, other in enumerate(self.steps) if other == step]
        (word,) = words((step,))
        i = self._positions.get(word)
        return [] if i is None or self.step(i) != step else [i]

    @cached_property
    def _positions(self) -> dict[Any, int]:
        """The positions by word, which is cheaper than by step."""
        return {word: i for i, word in enumerate(self.words)}


def flatten(value: Any, root: str = "value") -> tuple[Leaves, Any]:
    """Leaves and treedef, with BCOO and other vmappable types kept as leaves.

    Raises:
      BindError: The value contains itself, is nested too deep for JAX, or has a dict
        whose keys have no order.
    """
    with _explained(value, root):
        leaves, treedef = jtu.tree_flatten(value)
        if has_vmappable(treedef):
            leaves, treedef = jtu.tree_flatten(value, is_leaf=is_vmappable)
    return leaves, treedef


def flatten_with_keys(value: Any, root: str = "value") -> tuple[Leaves, Any, KeyPaths]:
    """Leaves, treedef, and the path of each leaf in JAX's own keys.

    Raises:
      BindError: As `flatten`.
    """
    # A look at each node from Python doubles the cost: only where one may be found.
    is_leaf = is_vmappable if vmappable_types() else None
    with _explained(value, root):
        flat, treedef = jtu.tree_flatten_with_path(value, is_leaf=is_leaf)
    keys, leaves = zip(*flat, strict=True) if flat else ((), ())
    return list(leaves), treedef, keys


@contextmanager
def _explained(value: Any, root: str) -> Iterator[None]:
    """Says in our words why JAX cannot walk a value."""
    if is_too_deep(value):
        raise too_deep(value, root)
    try:
        yield
    except (RecursionError, SystemError):
        raise too_deep(value, root) from None
    except ValueError:
        found = next(_unsorted(value), None)
        if found is None:  # what a class of the user's raised
            raise
        raise _unsortable(*found, root) from None


def too_deep(value: Any, root: str = "value") -> BindError:
    """The error for a container that cannot be walked."""
    return error(
        BindError,
        f"{root} contains itself, or is nested too deep for JAX to walk.",
        Problem(kind="depth", path=root, there=type(value).__name__),
        fixes=["look for a container that was put into itself"],
    )


def _unsorted(value: Any) -> Iterator[tuple[Path, dict[Any, Any]]]:
    """Path and object of each dict whose keys have no order, as far as is plain."""
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            try:
                sorted(node)
            except TypeError:
                yield path, node
            stack += [((*path, item_step(key)), x) for key, x in node.items()]
        elif isinstance(node, list | tuple):
            stack += [((*path, Index(i)), x) for i, x in enumerate(node)]


def _unsortable(path: Path, node: dict[Any, Any], root: str) -> BindError:
    """The error for a dict that JAX cannot put in order."""
    kinds = sorted({type(key).__name__ for key in node})
    return error(
        BindError,
        "the keys of a dict have no order, and JAX needs one.",
        Problem(kind="keys", path=code(path, root), there=f"keys: {', '.join(kinds)}"),
        fixes=["give the dict keys of one type"],
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


def leaves_by_path(value: Any, root: str = "value") -> list[tuple[Path, Any]]:
    """Path and object of each leaf, in flatten order."""
    leaves, _, all_keys = flatten_with_keys(value, root)
    paths = [tuple(map(step_of, keys)) for keys in all_keys]
    return list(zip(paths, leaves, strict=True))


def paths(value: Any) -> list[Path]:
    """The path of each leaf, in flatten order."""
    return [path for path, _ in leaves_by_path(value)]


def units(value: Any, is_unit: Callable[[Any], bool]) -> Iterator[tuple[Path, Any]]:
    """Path and object of each leaf, where `is_unit` tells what else is one."""
    flat, _ = jtu.tree_flatten_with_path(
        value, is_leaf=lambda x: is_vmappable(x) or is_unit(x)
    )
    for keys, x in flat:
        yield tuple(map(step_of, keys)), x


def step_of(key: Any) -> Step:
    """JAX's key entry as a step."""
    return _step(_word(key), isinstance(key, jtu.DictKey))


def _step(word: Any, is_item: bool) -> Step:
    """The step for what is in a key."""
    is_field = isinstance(word, str) and not is_item
    return Name(word) if is_field else item_step(word)


def _word(key: Any) -> Any:
    """The name, index or dict key in JAX's key entry."""
    match key:
        case jtu.DictKey() | jtu.FlattenedIndexKey():
            return key.key
        case jtu.SequenceKey():
            return key.idx
    # A class may be registered with keys of any kind.
    return getattr(key, "name", getattr(key, "key", key))


def children(node: Any) -> Children:
    """The children of one node, None among them; none for a leaf."""
    if node is None or is_vmappable(node):
        return Children()
    # Python's own containers come to the same as below, many times faster.
    if type(node) is dict:
        names = sorted(node)
        return Children(names, [node[name] for name in names], is_item=True)
    if type(node) in (list, tuple):
        return Children(range(len(node)), node)
    flat, treedef = jtu.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
    if jtu.treedef_is_leaf(treedef):
        return Children()
    kinds = {type(key) for (key,), _ in flat}
    return Children(
        [_word(key) for (key,), _ in flat],
        [x for _, x in flat],
        is_item=jtu.DictKey in kinds,
        is_named=jtu.FlattenedIndexKey not in kinds,
    )


def is_node(x: Any) -> bool:
    """Does JAX look inside? An empty container and None are nodes too."""
    return not is_vmappable(x) and not jtu.all_leaves([x])


def declares_fields(cls: type) -> bool:
    """Does the class say by itself what its objects hold?"""
    return is_attrs(cls) or hasattr(cls, "__dataclass_fields__")


def attributes(node: Any) -> dict[str, Any]:
    """The data attributes of an object by name: declared fields, else its `vars`."""
    if is_attrs(type(node)):
        names = [f.name for f in attrs_fields(type(node))]
    elif hasattr(type(node), "__dataclass_fields__"):
        names = list(type(node).__dataclass_fields__)
    else:
        names = list(getattr(node, "__dict__", ()))
    return {name: getattr(node, name) for name in names if hasattr(node, name)}


def statics(node: Any, below: Children) -> dict[str, Any]:
    """The static data of one node by name, as far as its class tells.

    Static is what is an attribute and no child. Where a class keeps its data in
    another way, there is one entry, the treedef's own data, named `(metadata)`.
    """
    steps = below.steps
    if isinstance(node, tuple | list | dict) or any(map(_is_item, steps)):
        return {}
    named = {step.name for step in steps if isinstance(step, Name)}
    objects = [] if below.is_named else below.values
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


def nodes(value: Any) -> Iterator[tuple[Path, Any, Children]]:
    """Every inner node with its path and children, parents first."""
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, node = stack.pop()
        if not is_node(node):
            continue
        below = children(node)
        yield path, node, below
        pairs = zip(below.steps, below.values, strict=True)
        stack += reversed([((*path, step), x) for step, x in pairs])
