"""Other ways to map and compile a function of a model."""

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax

from benchmarks.models import Model, concrete

try:
    from flax import nnx
except ImportError:  # the oldest flax that we take, with the oldest JAX
    nnx = None

Function: TypeAlias = Callable[[Model], Any]


def by_hand(fn: Function, model: Model) -> Function:
    """With JAX, once the model is known: its axes fit no other."""
    return jax.jit(jax.vmap(fn, in_axes=(concrete(model),)))


def one_jit(fn: Function) -> Function:
    """With JAX, for any model: the axes are made from it whenever it is traced."""
    return jax.jit(lambda model: jax.vmap(fn, in_axes=(concrete(model),))(model))


def flat(fn: Function, model: Model) -> Function:
    """With JAX, from the leaves: the least a call can cost that sees the structure."""
    by_leaves = jax.jit(_from_leaves(by_hand(fn, model), jax.tree.structure(model)))
    return lambda model: by_leaves(*jax.tree_util.tree_flatten(model)[0])


def _from_leaves(fn: Function, treedef: Any) -> Callable[..., Any]:
    """The same function of the leaves, one by one."""
    return lambda *leaves: fn(treedef.unflatten(leaves))


def _equinox(fn: Function, model: Model) -> Function:
    """With Equinox."""
    return eqx.filter_jit(eqx.filter_vmap(fn, in_axes=(concrete(model),)))


def _nnx(fn: Function, model: Model) -> Function:
    """With flax.nnx."""
    return nnx.jit(nnx.vmap(fn, in_axes=(concrete(model),)))


PEERS = {"equinox": _equinox} | ({"nnx": _nnx} if nnx else {})
"""By name, what does as `by_hand` does."""
