"""Sample values and batches for the tests of values, made without the package."""

import re
import textwrap
from operator import methodcaller

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from attrs import frozen
from flax import struct
from hypothesis import strategies as st


@struct.dataclass
class Net:
    w: jax.Array
    b: jax.Array
    run: str = struct.field(pytree_node=False, default="a")


@struct.dataclass
class Inertia:
    pos: jax.Array
    mass: jax.Array


@struct.dataclass
class Link:
    inertia: Inertia
    names: tuple = struct.field(pytree_node=False, default=())


@struct.dataclass
class Sys:
    link: Link
    damping: jax.Array
    cap: object = None
    dt: float = struct.field(pytree_node=False, default=0.01)


class Strict:
    """A class that takes arrays only and insists on its own kind of label."""

    def __init__(self, x, label):
        if not isinstance(x, np.ndarray | jax.Array):
            message = f"an array is needed, not {x!r}"
            raise TypeError(message)
        self.x = x
        self.label = str(label).upper()


jtu.register_pytree_with_keys(
    Strict,
    lambda s: ([(jtu.GetAttrKey("x"), s.x)], s.label),
    lambda label, children: Strict(*children, label),
)


def system(names=("torso",), dt=0.01):
    """A small physics model, with a field nested three deep."""
    inertia = Inertia(jnp.arange(3.0), jnp.array(2.0))
    return Sys(Link(inertia, names), jnp.ones((2, 2)), dt=dt)


def kinds_and_bits(tree):
    """The structure, and of each leaf its kind, dtype, shape and bytes."""
    leaves, treedef = jtu.tree_flatten(tree)
    return treedef, [_bits(leaf) for leaf in leaves]


def _bits(leaf):
    is_jax = isinstance(leaf, jax.Array)
    if is_jax and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return "key", str(leaf.dtype), leaf.shape, jax.random.key_data(leaf).tolist()
    if not isinstance(leaf, np.ndarray | np.generic | jax.Array | int | float):
        return leaf
    plain = np.asarray(leaf)
    return is_jax, plain.dtype.str, plain.shape, plain.tobytes()


def text(error):
    """The whole message, with the lines of this folder's files replaced."""
    return re.sub(r"\S*test_\w+\.py:\d+", "LINE", str(error.value))


def message(body):
    """A message as it is written in a test."""
    return textwrap.dedent(body).strip("\n")


@frozen
class Field:
    """What one leaf of a random value is like.

    Attributes:
      kind: `"numpy"`, `"jax"` or `"number"`.
      shape: That of one example.
      axis: In the batch, counted as the user writes it; None where it is shared.
      seed: Of its contents.
    """

    kind: str
    shape: tuple
    axis: int | None
    seed: int

    def example(self, k):
        """What example k has there."""
        rng = np.random.default_rng([self.seed, 0 if self.axis is None else k])
        if self.kind == "number":
            return float(rng.normal())
        x = rng.normal(size=self.shape).astype(np.float32)
        return jnp.asarray(x) if self.kind == "jax" else x

    def batch(self, n):
        """What a batch of n examples has there."""
        if self.axis is None:
            return self.example(0)
        x = np.stack([np.asarray(self.example(k)) for k in range(n)], self.axis)
        return jnp.asarray(x) if self.kind == "jax" else x


@st.composite
def fields(draw):
    """A leaf of up to three axes."""
    kind = draw(st.sampled_from(["numpy", "jax", "number"]))
    dims = st.lists(st.integers(1, 3), max_size=3).map(tuple)
    shape = () if kind == "number" else draw(dims)
    axes = st.integers(-len(shape) - 1, len(shape))
    return Field(kind, shape, draw(st.none() | axes), draw(st.integers(0, 99)))


def trees():
    """A value whose leaves are fields, one of them mapped at least."""
    nodes = st.recursive(
        fields() | st.none(),
        lambda inner: (
            st.lists(inner, min_size=1, max_size=3)
            | st.lists(inner, min_size=1, max_size=3).map(tuple)
            | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3)
            | st.builds(Net, inner, inner, st.sampled_from(["a", "b"]))
        ),
        max_leaves=6,
    )
    return nodes.filter(lambda tree: any(f.axis is not None for f in leaves_of(tree)))


def leaves_of(tree):
    """The fields of a random value."""
    return jtu.tree_leaves(tree, is_leaf=lambda x: isinstance(x, Field))


def examples(tree, n):
    """The first n examples that a random value describes."""
    return [jtu.tree_map(methodcaller("example", k), tree) for k in range(n)]


def batch(tree, n):
    """The batch of these."""
    return jtu.tree_map(methodcaller("batch", n), tree)


def decide(spec, tree, record):
    """Writes the axes of a random value into a builder, by text."""
    for keys, field in jtu.tree_flatten_with_path(tree)[0]:
        record(spec, jtu.keystr(keys), field.axis)
