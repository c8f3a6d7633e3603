"""The only file that knows JAX versions, or names that JAX does not make public."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import jax
import jax.api_util
import numpy as np
from jax._src.config import trace_context as _trace_context

# To delete once a public name tells which types `jax.vmap` takes as leaves. The public
# alias is deprecated since JAX 0.4.36, and 0.12.0 has no successor; registration,
# `jax.interpreters.batching.register_vmappable`, is public in all of them.
from jax._src.interpreters.batching import vmappables as _vmappables
from jax.tree_util import PyTreeDef


def vmappable_types() -> Collection[type]:
    """The types that `jax.vmap` takes as one leaf though they are nodes, as BCOO is."""
    return _vmappables


# What `jax.vmap` takes as arrays, by class. A tracer is a `jax.Array` by the word of
# `isinstance` alone up to JAX 0.7; mutable references come with `jax.new_ref`.
ARRAY_TYPES: tuple[type, ...] = (
    jax.Array,
    jax.core.Tracer,
    jax.ShapeDtypeStruct,
    np.ndarray,
    np.generic,
    *([jax.Ref] if hasattr(jax, "Ref") else []),
)


# `PyTreeDef` offers its nodes one by one (`node_data()`, `children()`), which costs
# four times as much from Python as this one call. A row is (kind, arity, data, class,
# leaves, nodes), in post-order, from JAX 0.4.30 to 0.12.0.1; a test reads it on each.
# To delete once `PyTreeDef` can list its nodes.
def treedef_nodes(treedef: Any) -> list[tuple[Any, ...]]:
    """A row for each node of the treedef, in post-order."""
    nodes: list[tuple[Any, ...]] = treedef.__getstate__()[1]
    return nodes


def node_data(row: tuple[Any, ...]) -> Any:
    """The static data in one row of `treedef_nodes`."""
    return row[2]


def node_class(row: tuple[Any, ...]) -> Any:
    """The registered class in one row of `treedef_nodes`, None for JAX's own kinds."""
    return row[3]


# `jax.config` has no way to ask what a trace depends on: `enable_x64`, the precision of
# matrix products, a mesh, the axes of a `vmap` around... To delete once it has one.
def trace_settings() -> Hashable:
    """All settings by which JAX tells one trace of a function from another."""
    settings: Hashable = _trace_context()  # type: ignore[no-untyped-call]
    return settings


# Since JAX 0.12 some operations, `jnp.nonzero` among them, are objects in a jaxpr.
_operations: tuple[Any, ...] = ()
if find_spec("jax.experimental.hijax"):
    _operations = (import_module("jax.experimental.hijax").HiPrim,)


def operation(x: Any) -> tuple[Any, ...] | None:
    """All that tells an operation from others, by its own `__eq__`; None for the rest.

    Its class, parameters and effects.
    """
    return (type(x), x.params, x.effects) if isinstance(x, _operations) else None


def constants(jaxpr: Any) -> Sequence[Any]:
    """The constants of a jaxpr; those of NumPy are copied first, once and for all.

    JAX keeps the arrays that a function used, not what they held, and reads them again
    for each device. Its list of them is its own, and can be written to.
    """
    found: Any = getattr(jaxpr, "consts", ())
    for i, x in enumerate(found):
        if isinstance(x, np.ndarray) and (x.flags.writeable or x.base is not None):
            found[i] = x.copy()
            found[i].flags.writeable = False
    return found  # type: ignore[no-any-return]


def is_jit_disabled() -> bool:
    """Are we inside of `jax.disable_jit`? Types do not know the name in any version."""
    return bool(jax.config.jax_disable_jit)  # type: ignore[attr-defined]


def aval_of(x: Any) -> Any:
    """Shape, dtype and weak type of an array or number, as JAX sees them.

    `jax.typeof` would do, but came with 0.6.
    """
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    return jax.api_util.shaped_abstractify(x)  # type: ignore[no-untyped-call]


def equation_settings(equation: Any) -> dict[str, Any]:
    """The settings under which one equation of a jaxpr was traced.

    Slots in JAX 0.5 and later, attributes before; what starts with an underscore, and
    `configs` in 0.12, only says how to restore them.
    """
    names = getattr(type(equation.ctx), "__slots__", None) or vars(equation.ctx)
    return {
        name: getattr(equation.ctx, name)
        for name in names
        if not name.startswith("_") and name != "configs"
    }


def treedef_with(treedef: Any, data_of: Callable[[tuple[Any, ...], Any], Any]) -> Any:
    """The treedef with other static data in each node."""
    registry, rows = treedef.__getstate__()
    changed = [(*row[:2], data_of(row, row[2]), *row[3:]) for row in rows]
    other = PyTreeDef.__new__(PyTreeDef)
    other.__setstate__((registry, changed))
    return other
