"""Random values with random decisions, and the axis that each leaf then has."""

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen
from hypothesis import strategies as st
from jax.experimental import sparse

import staged_axes as sa
from any_oracle import flatten
from any_trees import KINDS, place

AXES = (None, 0, 0, 1, -1, -2)
DTYPES = ("float32", "bfloat16", "int32", "bool", "complex64")


@frozen
class Case:
    """A value and what was decided about it.

    Attributes:
      value: Any pytree.
      size: How many examples there are.
      default: The axis where nothing is decided.
      decisions: The other axes, each with the words that lead to its place.
      axes: What all that comes to: an axis or None for each leaf, in flatten order.
    """

    value: object
    size: int
    default: int | None
    decisions: list[tuple[tuple[str | int, ...], int | None]]
    axes: list[int | None]

    def spec(self):
        """A builder that holds the decisions."""
        spec = sa.AxesBuilder(default=self.default)
        for path, axis in self.decisions:
            _write(spec, path, axis)
        return spec


def _write(spec, path, axis):
    """Records a decision as a user does, by an assignment."""
    if not path:
        sa.record(spec, "", axis)
        return
    *above, last = path
    parent = place(spec, above)
    if isinstance(last, str) and last.startswith("."):
        setattr(parent, last[1:], axis)
    else:
        parent[last] = axis


@st.composite
def cases(draw, sizes=(1, 3)):
    """A case with up to three levels of nodes, of one of some batch sizes."""
    size = draw(st.sampled_from(sizes))
    default = draw(st.sampled_from(AXES))
    decisions, planned = [], []

    def grow(path, axis, depth):
        if draw(st.integers(0, 3)) == 0:
            axis = draw(st.sampled_from(AXES))
            decisions.append((path, axis))
        if depth == 0:
            return leaf(path, axis)
        kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        return kind.build(
            *[
                grow(
                    (*path, draw(st.sampled_from(words))),
                    axis,
                    0 if kind.is_flat else draw(st.integers(0, depth - 1)),
                )
                for words in kind.words
            ]
        )

    def leaf(path, axis):
        x, own = draw(st.sampled_from(LEAVES))(draw, size, axis)
        if own != axis:
            decisions.append((path, own))
        # What is planned is told from the object, as the leaves of a node have an
        # order of their own.
        planned.append((x, own))
        return x

    value = grow((), default, draw(st.integers(0, 3)))
    axes = [next(axis for y, axis in planned if y is x) for x in flatten(value)[0]]
    return Case(value, size, default, decisions, axes)


def shape_for(draw, size, axis):
    """A shape with the batch on an axis; any small shape for a shared leaf."""
    least = 0 if axis is None else axis if axis >= 0 else -axis - 1
    shape = [2] * draw(st.integers(least, max(least, 1)))
    if axis is not None:
        shape.insert(axis if axis >= 0 else len(shape) + 1 + axis, size)
    return tuple(shape)


def _numpy(draw, size, axis):
    shape = shape_for(draw, size, axis)
    start = draw(st.integers(0, 9))
    plain = np.arange(start, start + np.prod(shape, dtype=int)).reshape(shape) % 5
    dtype = draw(st.sampled_from(DTYPES))
    return plain.astype(jnp.dtype(dtype)), axis


def _jax(draw, size, axis):
    plain, axis = _numpy(draw, size, axis)
    return jnp.asarray(plain), axis


def _weak(draw, size, axis):
    return jnp.broadcast_to(jnp.asarray(1.5), shape_for(draw, size, axis)), axis


def _keys(draw, size, axis):
    shape = shape_for(draw, size, axis)
    return jax.random.split(jax.random.key(draw(st.integers(0, 9))), shape), axis


def _sparse(draw, size, axis):
    dense = np.arange(size * 6.0, dtype=np.float32).reshape(size, 2, 3)
    x = sparse.BCOO.fromdense(dense, n_batch=1)
    return x, 0 if axis == 0 else None


def _number(draw, size, axis):
    return draw(st.sampled_from([3, 2.5, True, 1j, np.float32(4.0), np.bool_(1)])), None


def _opaque(draw, size, axis):
    kinds = ["text", jnp.sin, np.str_("text"), np.array(["a", "b"]), object(), Case]
    return draw(st.sampled_from(kinds)), None


def _nothing(draw, size, axis):
    return None, axis


LEAVES = (_numpy, _jax, _jax, _weak, _keys, _sparse, _number, _opaque, _nothing)
