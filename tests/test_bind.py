"""`bind`: what it takes, what it gives, and every problem in one error."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa

VALUE = {"a": jnp.ones((3, 2)), "b": [jnp.ones(2), jnp.ones((4, 3))], "n": None}


def spec():
    """One mapped, one shared, one on its last axis; a field that holds None."""
    s = sa.AxesBuilder(default=0)
    s.b[0] = None
    s.b[1] = -1
    s.n = 0
    return s


def test_axes_are_counted_from_the_front():
    """Negative axes are resolved a leaf; a field that holds None maps nothing."""
    bound = spec().bind(VALUE)
    assert bound.leaf_axes == (0, None, 1)
    assert bound.batch_size == 3
    assert bound.in_axes == {"a": 0, "b": [None, 1], "n": None}


def test_shapes_are_enough():
    """What `jax.eval_shape` gives, and tracers, bind too."""
    assert spec().bind(jax.eval_shape(lambda: VALUE)).leaf_axes == (0, None, 1)
    seen = []
    jax.jit(lambda v: seen.append(spec().bind(v)))(VALUE)
    assert seen[0].leaf_axes == (0, None, 1)


def test_binding_again_gives_the_same():
    """A value that looks the same, and one that does not."""
    s = spec()
    assert s.bind(VALUE) == s.bind(VALUE)
    other = {**VALUE, "a": jnp.ones((3, 7))}
    assert s.bind(other).leaf_axes == (0, None, 1)
    s.a = 1
    with pytest.raises(sa.BindError, match="batch size") as caught:
        s.bind(VALUE)
    assert {p.kind for p in caught.value.problems} == {"size"}


def test_what_is_recorded_later_counts():
    """No old binding is served for a record that has changed."""
    s, value = sa.AxesBuilder(default=0), {"x": jnp.ones((3, 3)), "y": jnp.ones(3)}
    assert s.bind(value).leaf_axes == (0, 0)
    s.x = 1
    assert s.bind(value).leaf_axes == (1, 0)
    s.y = None
    assert s.bind(value).leaf_axes == (1, None)


def test_a_bound_record_keeps_no_array():
    """The arrays of a value die with the value."""
    x = np.ones((3, 2))
    bound = sa.AxesBuilder().bind({"x": x})
    died = weakref.ref(x)
    del x
    gc.collect()
    assert died() is None
    assert bound.batch_size == 3


def test_all_problems_at_once():
    """An unknown name, an idle rule, a wrong axis, a wrong size: one error."""
    s = sa.AxesBuilder(default=0)
    s.aa = None
    sa.rule(s, "**/kernel", 0)
    s.b[0] = 5
    with pytest.raises(sa.BindError, match="did you mean") as caught:
        s.bind({**VALUE, "c": jnp.ones(9)})
    kinds = {p.kind for p in caught.value.problems}
    assert kinds >= {"unknown", "unmatched", "axis", "size"}
    assert len(str(caught.value)) < 2000


def test_like_a_template():
    """Mapped leaves must have the template's shape with the axis put in."""
    one = {"x": jnp.ones(2), "w": jnp.ones(4)}
    s = sa.AxesBuilder(default=None)
    s.x = 0
    assert s.bind({"x": jnp.ones((3, 2)), "w": jnp.ones(4)}, like=one).batch_size == 3
    with pytest.raises(sa.BindError, match="template") as caught:
        s.bind({"x": jnp.ones((3, 2)), "w": jnp.ones((3, 4))}, like=one)
    (problem,) = caught.value.problems
    assert (problem.path, problem.shape) == ("value['w']", (3, 4))


def test_a_class_that_refuses_ints():
    """`in_axes` says so; `bound.vmap` and `bound.batch` work."""

    @jax.tree_util.register_pytree_node_class
    class Strict:
        def __init__(self, x):
            if isinstance(x, int):
                message = "x is an array"
                raise TypeError(message)
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    value = Strict(jnp.arange(3.0))
    bound = sa.AxesBuilder().bind(value)
    with pytest.raises(sa.BindError, match=r"bound\.vmap") as caught:
        _ = bound.in_axes
    assert caught.value.problems[0].path == "bound.in_axes"
    for run in (bound.vmap, bound.batch):
        np.testing.assert_array_equal(run(lambda s: s.x * 2)(value), [0.0, 2.0, 4.0])


def test_many_leaves():
    """100,000 leaves bind, and print as few rows."""
    value = {f"k{i}": [np.ones(2)] * 100 for i in range(1_000)}
    s = sa.AxesBuilder(default=None)
    s.k7[3] = 0
    bound = s.bind(value)
    assert sum(axis is not None for axis in bound.leaf_axes) == 1
    assert "value['k7'][3]" in bound.table().plain()
    assert len(bound.table().rows) < 30


@pytest.mark.parametrize("size", ["3", -1, 3.0, True, jnp.array(3)], ids=repr)
def test_sizes_that_are_none(size):
    """A batch size that is none is refused at once."""
    text = "^axis_size is the number of examples: an int, 0 or more."
    with pytest.raises(sa.BindError, match=text) as caught:
        sa.AxesBuilder(default=None).bind({"x": np.ones(3)}, axis_size=size)
    assert caught.value.problems[0].path == "axis_size"
