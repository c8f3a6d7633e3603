"""Are two values built alike, and do they hold the same where they share? What differs.

Classes, names and static data are compared, leaves only where they are shared.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen

from staged_axes._resolve.misses import Decider, problem
from staged_axes._structure import tree as _tree
from staged_axes._structure.content import Key, Uncomparable, content, value_text
from staged_axes._values.members import is_numpy
from staged_axes._words.display import short
from staged_axes._words.paths import Name, Path, code
from staged_axes.errors import Problem, few


@frozen
class Model:
    """The value that the others have to be built like.

    Attributes:
      value: The value.
      name: What it is called in messages.
      key: That of its treedef; None where static data in it cannot be compared.
    """

    value: Any
    name: str
    key: Key | None

    def differences(self, other: Any, name: str) -> list[Problem]:
        """How another value is built differently; empty where it is built alike.

        The first place where classes or names differ; where they agree, every static
        field that differs.
        """
        treedef = _tree.flatten(other)[1]
        key = _key(treedef)
        try:
            if key is not None and key == self.key:
                return []
        except Uncomparable:
            key = None
        found = list(_walk(self, other, name))
        if found or key is None or self.key is None:
            return found
        # A class can put into its treedef what none of its attributes shows.
        return [
            problem(
                "static-differs",
                "value",
                None,
                there=f"the treedef of {name}",
                asked=f"not equal to that of {self.name}",
                fix=_EQUAL.format("..."),
            )
        ]


def model(value: Any, name: str) -> Model:
    """The value, ready to be compared with many others."""
    return Model(value, name, _key(_tree.flatten(value)[1]))


_EQUAL = (
    "make it equal first, as in [dataclasses.replace(v, {}=...) for v in values]; "
    "what differs from value to value belongs in a leaf"
)


def _key(treedef: Any) -> Key | None:
    """The treedef with its static data, by content; None where that gives no key."""
    try:
        return content(treedef)[0]
    except Uncomparable:
        return None


def _walk(model: Model, other: Any, name: str) -> list[Problem]:
    """Compares two values node by node, parents first."""
    found: list[Problem] = []
    stack: list[tuple[Path, Any, Any]] = [((), model.value, other)]
    while stack:
        path, x, y = stack.pop()
        if not (_tree.is_node(x) or _tree.is_node(y)):
            continue
        ours, theirs = _tree.children(x), _tree.children(y)
        if type(x) is not type(y) or ours.steps != theirs.steps:
            return [
                problem(
                    "alike",
                    code(path, "value"),
                    None,
                    there=f"{_what(y, theirs, ours)} in {name}",
                    asked=f"{_what(x, ours, theirs)} in {model.name}",
                    fix="build all of them in the same way; what is absent in some can "
                    "be an array of zeros",
                )
            ]
        found += _statics(model, name, path, (x, ours), (y, theirs))
        pairs = zip(ours.steps, ours.values, theirs.values, strict=True)
        stack += reversed([((*path, step), a, b) for step, a, b in pairs])
    return found


def _what(node: Any, below: _tree.Children, others: _tree.Children) -> str:
    """A node in short; the children that the other one lacks come first."""
    if not below:
        return short(node)
    names = [step.name for step in below.steps if isinstance(step, Name)]
    known = {step.name for step in others.steps if isinstance(step, Name)}
    if not names:
        return f"{type(node).__name__} of {len(below)}"
    names.sort(key=lambda name: name in known)
    return f"{type(node).__name__} with {few(names)}"


def _statics(
    model: Model,
    name: str,
    path: Path,
    ours: tuple[Any, _tree.Children],
    theirs: tuple[Any, _tree.Children],
) -> list[Problem]:
    """A problem for each static field of one node that differs."""
    a, b = _tree.statics(*ours), _tree.statics(*theirs)
    found = []
    for field in {**a, **b}:
        if field in a and field in b and are_equal(a[field], b[field]):
            continue
        one, two = (value_text(x[field]) if field in x else "absent" for x in (a, b))
        found.append(
            problem(
                "static-differs",
                code(path, "value") + ("" if field.startswith("(") else f".{field}"),
                None,
                there=f"{two} in {name}",
                asked=f"{one} in {model.name}"
                if one != two
                else f"not equal to that in {model.name}",
                fix=_EQUAL.format(field.strip("()")),
            )
        )
    return found


def are_same(a: Any, b: Any) -> bool:
    """Do two shared leaves hold the same, arrays bit for bit?

    A NumPy array and a JAX array may be the same; a tracer is the same as itself.
    """
    if a is b or is_traced(a) or is_traced(b):
        return a is b
    if _tree.is_vmappable(a) and type(a) is type(b):
        return are_equal(jax.tree.structure(a), jax.tree.structure(b)) and all(
            map(are_same, jax.tree.leaves(a), jax.tree.leaves(b))
        )
    if not (_is_array(a) and _is_array(b)):
        return are_equal(a, b)
    a, b = _plain(a), _plain(b)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    return are_equal(a, b) if a.dtype.hasobject else np.array_equal(_bits(a), _bits(b))


def shared_differs(
    path: Path, decider: Decider, x: Any, model: Any, name: str, model_name: str
) -> Problem:
    """The problem of a shared leaf that is not the same in two values."""
    here, there = value_text(x), value_text(model)
    differs = (
        f"{there} in {model_name}" if here != there else f"differs from {model_name}"
    )
    if is_traced(x) or is_traced(model):
        differs = "traced, so that nobody can compare it"
    return problem(
        "shared-differs",
        code(path, "value"),
        decider,
        there=f"{here} in {name}",
        asked=f"shared, but {differs}",
        fix=f"to map it:  {code(path)} = 0",
    )


def is_traced(x: Any) -> bool:
    """Is a tracer in it?"""
    return any(isinstance(part, jax.core.Tracer) for part in jax.tree.leaves(x))


def _is_array(x: Any) -> bool:
    """Is it an array or a number, with data in it?"""
    return isinstance(x, jax.Array) or is_numpy(x)


def _plain(x: Any) -> Any:
    """The data as a NumPy array; of a typed key, what is below it."""
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)


def _bits(x: Any) -> Any:
    """The bytes of an array in one row."""
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def are_equal(x: Any, y: Any) -> bool:
    """Is one object as good as the other: itself, or of equal content and types?"""
    if x is y:
        return True
    try:
        return content(x)[0] == content(y)[0]
    except Uncomparable:
        return False
