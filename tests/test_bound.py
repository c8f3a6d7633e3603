"""`bind`: the axes of a value, what it refuses, and what a bound record shows."""

import gc
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import staged_axes as sa
from any_trees import Box, Eager, Fickle, Nested, Slot, Strict, Unhashable, Wheel

X = jnp.arange(6.0).reshape(3, 2)
W = jnp.array([2.0, 5.0])


def wheel_spec():
    """The drag of a wheel is shared."""
    spec = sa.AxesBuilder(default=0)
    spec.drag = None
    return spec


# Values -----------------------------------------------------------------------------


def test_axes_count_from_the_front():
    """Negative axes are resolved for each leaf."""
    spec = sa.AxesBuilder(default=-1)
    bound = spec.bind({"a": np.ones((2, 3)), "b": np.ones(3), "c": np.ones((1, 2, 3))})
    assert (bound.leaf_axes, bound.batch_size) == ((1, 0, 2), 3)


def test_shapes_are_enough():
    """What `jax.eval_shape` gives binds as the value itself does."""
    value = Wheel(X, W)
    abstract = jax.eval_shape(lambda: value)
    bound = wheel_spec().bind(abstract)
    assert bound == wheel_spec().bind(value)
    assert str(bound) == str(wheel_spec().bind(value))


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad], ids=str)
def test_tracers_bind(transform):
    """Inside a transformation the shapes are those that it shows."""
    seen = []

    def fn(x):
        seen.append(wheel_spec().bind(Wheel(x, W)))
        return x.sum()

    transform(fn)(jnp.stack([X, X]) if transform is jax.vmap else X)
    (bound,) = seen
    assert (bound.leaf_axes, bound.batch_size) == ((0, None), 3)


def test_a_value_without_leaves():
    """Nothing is there to map, and nothing is wrong."""
    bound = sa.AxesBuilder().bind({"a": None, "b": []})
    assert (bound.leaf_axes, bound.batch_size) == ((), None)


def test_nothing_is_mapped():
    """Without a mapped leaf the size has to be said."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.BindError, match="the batch size is not known"):
        spec.bind(Wheel(X, W))
    assert spec.bind(Wheel(X, W), axis_size=4).batch_size == 4


def test_a_size_that_the_leaves_do_not_have():
    """A size that is given must be that of the mapped leaves."""
    with pytest.raises(sa.BindError, match="axis_size") as e:
        wheel_spec().bind(Wheel(X, W), axis_size=4)
    (problem,) = e.value.problems
    assert (problem.path, problem.shape) == ("value.radius", (3, 2))


def test_sparse_arrays_are_one_leaf():
    """A vmappable type is a leaf, as for `jax.vmap`."""
    x = sparse.BCOO.fromdense(np.ones((3, 2, 2)), n_batch=1)
    assert sa.AxesBuilder().bind([x, X]).leaf_axes == (0, 0)


def test_a_sparse_array_without_batch_axes():
    """Only the batch axes of a sparse array can be mapped, and the error says so."""
    x = sparse.BCOO.fromdense(np.ones((3, 2)))
    with pytest.raises(sa.BindError, match="n_batch=0") as e:
        sa.AxesBuilder().bind([x, X])
    (problem,) = e.value.problems
    assert (problem.kind, problem.path, problem.axis) == ("axis", "value[0]", 0)


# Everything at once -----------------------------------------------------------------


def test_every_problem_is_named():
    """One error holds all that is wrong, with the data of each."""
    spec = sa.AxesBuilder(default=0)
    spec.radiuss = None
    spec.label = None
    spec.drag = 5
    sa.rule(spec, "**/nothing", 0)
    with pytest.raises(sa.BindError, match="1 decision points at something") as e:
        spec.bind(Wheel(X, W))
    kinds = {p.kind: p for p in e.value.problems}
    assert set(kinds) == {"unknown", "static", "unmatched", "axis"}
    assert kinds["axis"].path == "value.drag"
    assert (kinds["axis"].axis, kinds["axis"].shape) == (5, (2,))
    assert all(p.file == __file__ for p in e.value.problems)
    assert len(str(e.value)) <= 2000


# What a class takes -----------------------------------------------------------------


def test_in_axes_serves_jax():
    """The axes in the value's own structure, with its own static data."""
    value = Wheel(X, W, label=("late", 3))
    axes = wheel_spec().bind(value).in_axes
    assert axes == Wheel(0, None, label=("late", 3))
    got = jax.vmap(lambda w: w.radius * w.drag, in_axes=(axes,))(value)
    np.testing.assert_array_equal(got, np.asarray(X) * np.asarray(W))


def test_in_axes_keeps_the_none_of_the_value():
    """A field that holds None holds None."""
    bound = sa.AxesBuilder().bind((X, None, {"a": None, "b": X}))
    assert bound.in_axes == (0, None, {"a": None, "b": 0})


@pytest.mark.parametrize(
    ("cls", "why"),
    [
        (Strict, "TypeError: two arrays are needed"),
        (Eager, ""),  # each version of JAX has another reason to refuse None
        (Fickle, "it changes what is put into it"),
        (Nested, "it changes what is put into it"),
    ],
)
def test_in_axes_of_a_class_that_refuses(cls, why):
    """Such a class is named, with the two ways that work for it; they do."""
    spec = sa.AxesBuilder(default=0)
    spec.b = None
    value = cls(X, W)
    bound = spec.bind(value)
    with pytest.raises(sa.BindError, match=rf"{cls.__name__} cannot be built") as e:
        _ = bound.in_axes
    (problem,) = e.value.problems
    assert problem.kind == "in-axes"
    assert why in problem.there
    assert "bound.vmap(fn) or bound.batch(fn)" in str(e.value)
    for run in (bound.vmap, bound.batch):
        got = run(lambda o: o.a * o.b)(value)
        np.testing.assert_array_equal(got, np.asarray(X) * np.asarray(W))


def test_in_axes_with_static_data_that_jax_cannot_compare():
    """JAX would fail on it with its own words; this fails before, with ours."""
    bound = wheel_spec().bind(Wheel(X, W, label=np.arange(3)))
    again = bound.in_axes
    assert again.label is not None
    made = sa.AxesBuilder().bind(Copying(X, np.arange(3)))
    with pytest.raises(sa.BindError, match="Copying cannot be built with axes"):
        _ = made.in_axes


class Copying:
    """A class that copies its static data, an array, whenever it is built."""

    def __init__(self, x, table):
        self.x, self.table = x, table.copy()


jax.tree_util.register_pytree_node(
    Copying, lambda c: ((c.x,), c.table), lambda table, xs: Copying(*xs, table)
)


def test_bound_vmap_serves_other_values():
    """What is bound to one value maps every value that the record fits."""
    bound = wheel_spec().bind(Wheel(X, W, label="a"))
    got = bound.vmap(lambda w: w.radius * len(w.label))(Wheel(X[:2], W, label="bb"))
    np.testing.assert_array_equal(got, np.asarray(X[:2]) * 2)


def test_bound_vmap_with_nothing_mapped():
    """A size that was given to `bind` is kept."""
    bound = sa.AxesBuilder(default=None).bind(W, axis_size=3)
    np.testing.assert_array_equal(bound.vmap(lambda w: w)(W), np.stack([W] * 3))


def test_a_bound_record_does_not_change():
    """What is recorded later does not count in what is bound."""
    spec = wheel_spec()
    bound = spec.bind(Wheel(X, W))
    spec.radius = 1
    assert bound.leaf_axes == (0, None)
    np.testing.assert_array_equal(bound.vmap(lambda w: w.radius)(Wheel(X, W)), X)
    assert spec.bind(Wheel(X, W)).leaf_axes == (1, None)


# Once more --------------------------------------------------------------------------


def test_another_value_of_the_same_structure():
    """It is bound by its own shapes and its own static data."""
    spec = wheel_spec()
    first = spec.bind(Wheel(X, W, label=1))
    second = spec.bind(Wheel(X[:2], W, label=True))
    third = spec.bind(Wheel(X, W, label=1.0))
    assert [b.batch_size for b in (first, second, third)] == [3, 2, 3]
    assert [repr(b.in_axes.label) for b in (first, second, third)] == [
        "1",
        "True",
        "1.0",
    ]


def test_another_value_with_other_dtypes():
    """The table shows what is there now."""
    spec = sa.AxesBuilder()
    assert "f32[3,2]" in str(spec.bind([X]))
    assert "i32[3,2]" in str(spec.bind([X.astype(int)]))
    assert "f64[3,2]" in str(spec.bind([np.ones((3, 2))]))


def test_a_value_that_is_wrong_after_one_that_was_right():
    """The same structure does not make it right."""
    spec = wheel_spec()
    spec.bind(Wheel(X, W))
    with pytest.raises(sa.BindError, match="does not have the axis"):
        spec.bind(Wheel(jnp.ones(()), W))
    with pytest.raises(sa.BindError, match="mapped but"):
        spec.bind(Wheel("radius", W))
    with pytest.raises(sa.BindError, match="size"):
        spec.bind(Wheel(X, W), axis_size=7)


def test_decisions_that_ask_the_value_ask_each_value():
    """`per_leaf` and `from_node` are never remembered."""
    spec = sa.AxesBuilder(default=sa.per_leaf(lambda x: 0 if x.ndim > 1 else None))
    assert spec.bind([X, W]).leaf_axes == (0, None)
    assert spec.bind([X, X]).leaf_axes == (0, 0)
    spec = sa.AxesBuilder()
    sa.record(spec, "", sa.from_node(lambda s: 0 if s.rate > 1 else 1))
    assert spec.bind(Slot(X, X, rate=2)).leaf_axes == (0, 0)
    assert spec.bind(Slot(X, X, rate=1)).leaf_axes == (1, 1)


def test_names_of_a_keyless_class_are_looked_up_in_each_value():
    """Which child an attribute holds is asked of every value."""

    class Turned(Box):
        """Holds its children the other way round."""

    jax.tree_util.register_pytree_node(
        Turned, lambda b: ((b.a, b.b), None), lambda _, c: Turned(*c)
    )
    spec = sa.AxesBuilder(default=0)
    spec.first = None
    value = Turned(X, X + 1)
    value.first = value.a
    assert spec.bind(value).leaf_axes == (None, 0)
    value.first = value.b
    assert spec.bind(value).leaf_axes == (0, None)


def test_static_data_that_cannot_be_compared():
    """It is bound anew each time, and always right."""
    spec = wheel_spec()
    for _ in range(3):
        bound = spec.bind(Wheel(X, W, label=Unhashable()))
        assert bound.leaf_axes == (0, None)


def test_threads():
    """One builder binds in several threads."""
    spec = wheel_spec()
    values = [Wheel(jnp.ones((n, 2)), W, label=n) for n in range(1, 9)]
    wrong = []

    def work():
        for _ in range(20):
            for n, value in enumerate(values, 1):
                bound = spec.bind(value)
                if (bound.batch_size, bound.in_axes.label) != (n, n):
                    wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_array_is_kept():
    """Neither the bound record nor the builder keeps an array of the value alive."""
    spec = wheel_spec()
    radius, drag = np.ones((3, 2)), np.ones(2)
    seen = [weakref.ref(radius), weakref.ref(drag)]
    bound = [spec.bind(Wheel(radius, drag)), spec.bind(Wheel(radius, drag))]
    del radius, drag
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
    assert "f64[3,2]" in str(bound[0])


# Hostile values ---------------------------------------------------------------------


def depth_left():
    """How deep Python can still go."""

    def deeper(n):
        try:
            return deeper(n + 1)
        except RecursionError:
            return n

    return deeper(0)


def cyclic_list():
    """A list in itself, with a leaf beside it."""
    value = [X]
    value.append(value)
    return value


def cyclic_dict():
    """A dict in itself."""
    value = {"x": X}
    value["itself"] = {"again": value}
    return value


def cyclic_struct():
    """A class that holds a list in which it is."""
    value = Wheel([X], W)
    value.radius.append(value)
    return value


def cyclic_slots():
    """A keyless class in itself."""
    value = Box(X, W)
    value.b = (value,)
    return value


def very_deep():
    """No cycle, but too many levels."""
    value = X
    for _ in range(5000):
        value = [value, W]
    return value


@pytest.mark.parametrize(
    "make", [cyclic_list, cyclic_dict, cyclic_struct, cyclic_slots, very_deep]
)
def test_what_has_no_end(make):
    """It is named, and Python is as it was before."""
    before = depth_left()
    with pytest.raises(sa.BindError, match="contains itself, or is nested too deep"):
        sa.AxesBuilder().bind(make())
    assert depth_left() == before


def test_static_data_may_go_in_circles():
    """A node that is its own static data is no cycle of children."""
    value = Slot(X, W)
    value.rate = value
    spec = sa.AxesBuilder(default=0)
    spec.window = None
    assert spec.bind(value).leaf_axes == (0, None)


@pytest.mark.parametrize("depth", [50, 200])
def test_deep_values(depth):
    """A deep value binds, prints, and takes a decision at its end."""
    value = [X, W]
    for _ in range(depth):
        value = [value, X]
    spec = sa.AxesBuilder(default=0)
    sa.record(spec, "[0]" * depth + "[1]", None)
    bound = spec.bind(value)
    assert bound.leaf_axes == (0, None, *[0] * depth)
    assert f"{depth + 2} leaves, {depth + 1} mapped" in str(bound)


def test_very_many_leaves():
    """They bind, print in a few lines, and fail in a few lines."""
    value = {f"k{i}": W for i in range(20_000)}
    spec = sa.AxesBuilder()
    spec.k7 = None
    bound = spec.bind(value)
    assert bound.leaf_axes.count(None) == 1
    assert len(str(bound).splitlines()) < 12
    wrong = sa.AxesBuilder(default=1)
    with pytest.raises(sa.BindError, match="20000 leaves do not have the axis") as e:
        wrong.bind(value)
    assert len(e.value.problems) == 20_000
    assert len(str(e.value)) <= 2000


def test_keys_that_have_no_order():
    """The dict is named."""
    with pytest.raises(sa.BindError, match="keys of a dict have no order") as e:
        sa.AxesBuilder().bind({"a": ({1: X, "b": X},)})
    assert e.value.problems[0].path == "value['a'][0]"


# Tables -----------------------------------------------------------------------------


def test_print_of_a_small_value():
    """A line for each leaf: path, array, axis, size, who decided."""
    spec = sa.AxesBuilder(default=0)
    with spec.stage("sysid"):
        spec.drag = None
    spec.mode = sa.STATIC
    lines = str(spec.bind({"drag": W, "mode": "fast", "radius": X})).splitlines()
    assert lines[0] == "3 leaves, 1 mapped, batch size 3"
    cells = [line.split()[:4] for line in lines[2:]]
    assert cells[0] == ["path", "array", "axis", "size"]
    assert cells[1][:4] == ["value['drag']", "f32[2]", "-", "sysid"]
    assert cells[2][:3] == ["value['mode']", "str", "static"]
    assert cells[3] == ["value['radius']", "f32[3,2]", "0", "3"]
    assert all("test_bound.py:" in line for line in lines[3:])


def test_print_of_a_large_value():
    """Whole subtrees that are decided alike are one line."""
    spec = sa.AxesBuilder(default=None)
    spec.layers[3].w = 0
    value = {"layers": [{"b": W, "w": X} for _ in range(40)], "rest": [W] * 40}
    lines = str(spec.bind(value)).splitlines()
    assert len(lines) < 14
    assert any("value['layers'][3]['w']" in line for line in lines)


def test_repr_is_one_line():
    """The `repr` says how many leaves there are and how many are mapped."""
    bound = wheel_spec().bind(Wheel(X, W))
    assert repr(bound) == "<BoundAxes: 1 of 2 leaves mapped, batch size 3>"


def test_html():
    """In a notebook the same rows are a table, with nothing of the user's unescaped."""
    shown = sa.AxesBuilder().bind({"<b>": X})._repr_html_()
    assert shown.startswith("<table>")
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_no_repr_of_the_users_is_called():
    """Neither the contents nor the text of a leaf is looked at."""

    class Loud:
        def __repr__(self):
            raise AssertionError

    spec = sa.AxesBuilder(default=0)
    spec.loud = None
    assert "Loud" in str(spec.bind({"loud": Loud(), "x": X}))
