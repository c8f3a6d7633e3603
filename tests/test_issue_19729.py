"""The programs of https://github.com/jax-ml/jax/issues/19729, on each JAX there is.

Axes are made while the static data of the value is not known, or is known wrongly, and
hold None where the value holds a whole subtree.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import staged_axes as sa


@struct.dataclass
class Bar:
    b: jax.Array
    c: jax.Array


@struct.dataclass
class Foo:
    a: jax.Array
    bar: Bar
    static_field: str = struct.field(pytree_node=False, default="not known yet")


def value():
    """What comes late: three examples of `a`, one `bar` for all, a static field."""
    return Foo(
        a=jnp.array([1.0, 2.0, 3.0]),
        bar=Bar(b=jnp.array([10.0, 20.0]), c=jnp.array(0.5)),
        static_field="known",
    )


def fn(foo):
    """The function of one example; it reads the static field too."""
    return foo.a * foo.bar.c + foo.bar.b.sum() + len(foo.static_field)


def expected():
    """The explicit loop."""
    foo = value()
    return np.stack([fn(foo.replace(a=foo.a[i])) for i in range(3)])


# Made early, as in the issue: axes in the place of arrays, None for a whole subtree.
EARLY = {
    "static data missing": Foo(a=0, bar=None),
    "static data wrong": Foo(a=0, bar=None, static_field="of the template"),
    "None leaf by leaf": Foo(a=0, bar=Bar(b=None, c=None), static_field="?"),
}


def decided():
    """The record of the issue: mapped everywhere, but for `bar`."""
    spec = sa.AxesBuilder()
    spec.bar = None
    return spec


@pytest.mark.parametrize("early", EARLY.values(), ids=EARLY)
def test_plain_jax_refuses_the_early_tree(early):
    """The trouble is real: `jax.vmap` compares static data."""
    with pytest.raises(ValueError, match="vmap in_axes"):
        jax.vmap(fn, in_axes=(early,))(value())


@pytest.mark.parametrize("early", EARLY.values(), ids=EARLY)
@pytest.mark.parametrize("run", [sa.vmap, sa.batch], ids=["vmap", "batch"])
def test_the_early_tree_itself_maps(run, early):
    """An ordinary axes tree serves, whatever its static data."""
    np.testing.assert_array_equal(run(fn, in_axes=(early,))(value()), expected())


@pytest.mark.parametrize("run", [sa.vmap, sa.batch], ids=["vmap", "batch"])
def test_a_builder_maps(run):
    """A record made without any data serves."""
    np.testing.assert_array_equal(run(fn, in_axes=(decided(),))(value()), expected())


def test_the_bound_axes_serve_jax_itself():
    """`in_axes` has the value's own structure and static data."""
    bound = decided().bind(value())
    assert bound.leaf_axes == (0, None, None)
    assert bound.batch_size == 3
    assert bound.in_axes == Foo(0, Bar(None, None), "known")
    got = jax.vmap(fn, in_axes=(bound.in_axes,))(value())
    np.testing.assert_array_equal(got, expected())


def test_the_bound_axes_map():
    """`bound.vmap` and `bound.batch` map too."""
    bound = decided().bind(value())
    np.testing.assert_array_equal(bound.vmap(fn)(value()), expected())
    np.testing.assert_array_equal(bound.batch(fn)(value()), expected())


def test_a_state_comes_back_as_it_went():
    """With the record for the output too, the shared subtree comes back shared."""
    spec = decided()
    moved = sa.vmap(lambda foo: foo.replace(a=foo.a + 1), spec, out_axes=spec)(value())
    np.testing.assert_array_equal(moved.a, [2.0, 3.0, 4.0])
    np.testing.assert_array_equal(moved.bar.b, [10.0, 20.0])
    assert moved.static_field == "known"


def test_a_record_serves_values_whose_static_data_differs():
    """One record, three static fields, one binding each."""
    spec = decided()
    for late in ("x", "yy", "zzz"):
        foo = value().replace(static_field=late)
        assert spec.bind(foo).in_axes.static_field == late
        want = [fn(foo.replace(a=foo.a[i])) for i in range(3)]
        np.testing.assert_array_equal(sa.vmap(fn, spec)(foo), np.stack(want))
