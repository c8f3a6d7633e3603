"""Binding a record to a large value."""

from collections.abc import Mapping
from functools import partial

import jax
from jax.api_util import flatten_axes
from jax.tree_util import tree_flatten_with_path

import staged_axes as sa
from benchmarks.measure import Stopwatch, once, repeated
from benchmarks.models import Model, concrete, make, unseen


def cold(leaves: int, decisions: int) -> Mapping[str, Stopwatch]:
    """A record and a structure that have not met; JAX's own match of axes as a peer."""
    model, models = make(leaves), unseen(leaves)

    def new() -> tuple[sa.AxesBuilder, Model]:
        return _record(leaves, decisions), next(models)

    treedef, axes = jax.tree.structure(model), concrete(model)
    return {
        "staged_axes": once(new, lambda pair: pair[0].bind(pair[1])),
        "tree_flatten_with_path": repeated(partial(tree_flatten_with_path, model)),
        "flatten_axes": repeated(partial(flatten_axes, "axes", treedef, axes)),
    }


def again(leaves: int, decisions: int) -> Mapping[str, Stopwatch]:
    """The same record and the same structure once more."""
    model, spec = make(leaves), _record(leaves, decisions)
    return {
        "staged_axes": repeated(partial(spec.bind, model)),
        "tree_flatten": repeated(partial(jax.tree.flatten, model)),
    }


def _record(leaves: int, decisions: int) -> sa.AxesBuilder:
    """So many decisions, spread evenly over a model."""
    spec = sa.AxesBuilder(default=None)
    for i in range(decisions):
        spec.bodies[i * (leaves // 2) // decisions].mass = 0
    return spec
