"""Hypothesis: values of random structure, with random decisions and their outcome.

The axis of each leaf is worked out here, by looking up the longest decided prefix of
its path; the package has no part in it.
"""

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen
from hypothesis import strategies as st

from trees import NODES

# Few shapes and sizes: JAX compiles each operation for each of them.
SHAPES = st.sampled_from([(), (2,), (2, 2)])
DTYPES = st.sampled_from(["float32", "int32", "bool", "bfloat16", "weak", "key"])


@frozen
class Case:
    """A batched value, what is to be recorded, and the axis of each leaf."""

    value: object
    default: int | None
    decisions: dict
    axes: list
    size: int


@frozen
class _Leaf:
    shape: tuple
    dtype: str


def _trees():
    """Nested pairs with leaves at their ends; None stands where there is nothing."""
    leaf = st.builds(_Leaf, SHAPES, DTYPES) | st.just(None)
    return st.recursive(
        leaf,
        lambda inner: st.tuples(st.sampled_from(sorted(NODES)), inner, inner),
        max_leaves=4,
    )


def _places(tree, path=()):
    """Every node and leaf with its path."""
    yield path, tree
    if isinstance(tree, tuple):
        kind, *children = tree
        for name, child in zip(NODES[kind][1], children, strict=True):
            yield from _places(child, (*path, name))


def _array(draw, leaf, axis, size):
    """A batched array, or one for all."""
    shape = leaf.shape
    if axis is not None:
        at = axis % (len(shape) + 1)
        shape = (*shape[:at], size, *shape[at:])
    seed = draw(st.integers(0, 99))
    numbers = np.random.default_rng(seed).integers(0, 5, shape)
    if leaf.dtype == "key":
        count = int(np.prod(shape, dtype=int))
        return jax.random.split(jax.random.key(seed), count).reshape(shape)
    if leaf.dtype == "weak":
        # A weakly typed array, as one that came from a Python number is.
        return jax.lax.full(shape, 2.5) * 1.0 if shape else jnp.asarray(2.5)
    array = numbers.astype(jnp.dtype(leaf.dtype))
    return draw(st.sampled_from([np.asarray, jnp.asarray]))(array)


def _build(draw, tree, path, axes, size):
    """The value of a tree."""
    if isinstance(tree, tuple):
        kind, *children = tree
        make, names = NODES[kind]
        return make(
            *(
                _build(draw, child, (*path, name), axes, size)
                for name, child in zip(names, children, strict=True)
            )
        )
    return None if tree is None else _array(draw, tree, axes[path], size)


@st.composite
def cases(draw):
    """A value with decisions on some of its leaves and nodes; something is mapped."""
    pair = st.tuples(st.sampled_from(sorted(NODES)), _trees(), _trees())
    tree = draw(pair.filter(lambda t: any(isinstance(x, _Leaf) for _, x in _places(t))))
    places = dict(_places(tree))
    default = draw(st.sampled_from([0, -1, None]))
    chosen = draw(st.lists(st.sampled_from([p for p in places if p]), max_size=4))
    decisions = {}
    # From the outside in: a later decision of one stage replaces what is below it.
    for path in sorted(chosen, key=len):
        leaf = places[path]
        # An axis other than the ends needs a leaf that has it.
        ndim = len(leaf.shape) if isinstance(leaf, _Leaf) else 0
        ends = st.sampled_from([None, 0, -1])
        decisions[path] = draw(ends | st.integers(-ndim - 1, ndim) if ndim else ends)
    leaves = [path for path, x in places.items() if isinstance(x, _Leaf)]
    axes = {}
    for path in leaves:
        prefixes = [path[:n] for n in range(len(path), 0, -1)]
        found = [decisions[p] for p in prefixes if p in decisions]
        axes[path] = found[0] if found else default
    if all(axis is None for axis in axes.values()):
        decisions[leaves[0]] = axes[leaves[0]] = 0
        decisions = dict(sorted(decisions.items(), key=lambda item: len(item[0])))
    size = draw(st.sampled_from([1, 3]))
    value = _build(draw, tree, (), axes, size)
    return Case(value, default, decisions, [axes[path] for path in leaves], size)
