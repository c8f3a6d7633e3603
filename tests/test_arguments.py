"""`in_axes` in every form, and which argument each entry is for."""

import functools
import operator
import re

import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa

X = jnp.arange(6.0).reshape(3, 2)
W = jnp.array([2.0, 5.0])
XW = np.asarray(X) * np.asarray(W)


def fn(x, w):
    """A function of two arguments."""
    return x * w


def spec_for_w():
    """A builder for a shared argument."""
    return sa.AxesBuilder(default=None)


def bound_w():
    """A bound record for a shared argument."""
    return spec_for_w().bind(W, axis_size=3)


FORMS = {
    "tuple": (0, None),
    "list": [0, None],
    "numpy integers": (np.int64(0), None),
    "builder": (0, spec_for_w()),
    "bound": (0, bound_w()),
    "function": (0, lambda leaf: None if leaf.ndim == 1 else 0),
    "one function for all": lambda leaf: 0 if leaf.ndim == 2 else None,
    "per_leaf": sa.per_leaf(lambda leaf: 0 if leaf.ndim == 2 else None),
    "from_node": (0, sa.from_node(lambda node: None)),
    "optional": (0, sa.optional(None)),
    "static": (0, sa.STATIC),
    "names": {"x": 0, "w": None},
    "one name": {"w": None},
    "negative": (-2, None),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    """Every form says the same: the first argument is mapped, the second shared."""
    np.testing.assert_array_equal(sa.vmap(fn, in_axes=FORMS[form])(X, W), XW)


@pytest.mark.parametrize(
    "inside",
    [None, spec_for_w(), lambda leaf: None, sa.per_leaf(lambda leaf: None)],
    ids=["axis", "builder", "function", "per_leaf"],
)
def test_trees(inside):
    """An entry may be an axes tree, with whatever says axes among its leaves."""
    tree = {"x": 0, "w": inside}
    got = sa.vmap(lambda v: fn(**v), in_axes=(tree,))({"x": X, "w": W})
    np.testing.assert_array_equal(got, XW)


def test_a_prefix():
    """One entry of a tree stands for everything below it."""
    axes = {"a": 0, "b": None}
    value = {"a": [X, {"deep": X}], "b": (W, [W])}
    got = sa.vmap(lambda v: v["a"][1]["deep"] * v["b"][1][0], in_axes=(axes,))(value)
    np.testing.assert_array_equal(got, XW)


def test_a_list_in_a_tree_stands_for_a_tuple():
    """Positions count, not the class of the container."""
    got = sa.vmap(lambda v: v[0] * v[1], in_axes=([0, None],))((X, W))
    np.testing.assert_array_equal(got, XW)


def test_a_builder_stands_for_the_only_argument():
    """A bare builder needs no tuple around it."""
    spec = sa.AxesBuilder(default=0)
    spec.w = None
    got = sa.vmap(lambda v: fn(**v), in_axes=spec)({"x": X, "w": W})
    np.testing.assert_array_equal(got, XW)


def test_a_bound_record_stands_for_the_only_argument():
    """So does a bound one."""
    spec = sa.AxesBuilder(default=0)
    spec.w = None
    value = {"x": X, "w": W}
    got = sa.vmap(lambda v: fn(**v), in_axes=spec.bind(value))(value)
    np.testing.assert_array_equal(got, XW)


def test_a_field_named_entries_is_a_field():
    """What says axes is told by its class, not by the names of its attributes."""
    from any_trees import Box

    axes = Box(0, None)
    axes.entries = "mine"
    got = sa.vmap(lambda b: b.a * b.b, in_axes=(axes,))(Box(X, W))
    np.testing.assert_array_equal(got, XW)


# Keyword arguments ------------------------------------------------------------------


def test_keywords_are_mapped_on_axis_0():
    """As in JAX, whatever `in_axes` says of positional arguments."""
    got = sa.vmap(fn, in_axes=(None,))(W, w=X)
    np.testing.assert_array_equal(got, XW)


@pytest.mark.parametrize("call", [lambda f: f(X, W), lambda f: f(X, w=W)])
def test_a_name_holds_however_the_argument_is_given(call):
    """By position or by keyword."""
    np.testing.assert_array_equal(call(sa.vmap(fn, in_axes={"w": None})), XW)


def test_keywords_in_any_order():
    """The order in which keywords are given changes nothing."""
    axes = {"w": None, "x": 0}
    np.testing.assert_array_equal(sa.vmap(fn, in_axes=axes)(w=W, x=X), XW)


def test_a_default_needs_no_entry():
    """An argument that is not given is not mapped."""

    def scaled(x, w=W):
        return x * w

    np.testing.assert_array_equal(sa.vmap(scaled)(X), XW)
    np.testing.assert_array_equal(sa.vmap(scaled, in_axes={"w": None})(X), XW)


def test_star_args():
    """The name of `*args` stands for all that it takes."""

    def scaled(x, *rest):
        return x * rest[0] * rest[1]

    got = sa.vmap(scaled, in_axes={"x": 0, "rest": None})(X, W, W)
    np.testing.assert_array_equal(got, XW * np.asarray(W))


def test_star_kwargs():
    """The name of `**kwargs` stands for all that it takes, a name of its own wins."""

    def scaled(x, **rest):
        return x * rest["w"] * rest["s"]

    got = sa.vmap(scaled, in_axes={"rest": None, "s": 0})(X, w=W, s=X)
    np.testing.assert_array_equal(got, XW * np.asarray(X))


def test_a_python_option():
    """A shared Python value stays one, and may be looked at."""

    def power(x, order=1):
        return x**2 if order == 2 else x

    got = sa.vmap(power, in_axes={"order": None})(X, order=2)
    np.testing.assert_array_equal(got, np.asarray(X) ** 2)


# Callables of every kind ------------------------------------------------------------


class Model:
    """Something with a method, which can be called itself."""

    def method(self, x, w):
        """A method."""
        return x * w

    def __call__(self, x, w):
        """The object called."""
        return x * w


CALLABLES = {
    "function": fn,
    "method": Model().method,
    "object": Model(),
    "partial": functools.partial(lambda k, x, w: k * x * w, 1.0),
    "partial by name": functools.partial(lambda x, w, k: k * x * w, k=1.0),
    "builtin": operator.mul,
    "ufunc": jnp.multiply,
    "lambda": lambda x, w: x * w,
}


@pytest.mark.parametrize("name", CALLABLES)
def test_callables(name):
    """Whatever can be called can be mapped."""
    np.testing.assert_array_equal(sa.vmap(CALLABLES[name], (0, None))(X, W), XW)


@pytest.mark.parametrize("name", ["method", "object", "partial", "partial by name"])
def test_callables_by_name(name):
    """Names are those of the arguments that are left to give."""
    np.testing.assert_array_equal(sa.vmap(CALLABLES[name], {"w": None})(X, W), XW)


# What is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    "in_axes",
    ["x", 1.0, True, {0}, jnp.array(0), sa.UNDECIDED, sa.AUTO, (0, "x"), (0, 1.5)],
    ids=repr,
)
def test_what_is_no_in_axes(in_axes):
    """It is refused at the line that writes it, not at the call."""
    with pytest.raises(sa.RecordError, match="axis") as e:
        sa.vmap(fn, in_axes=in_axes)
    assert e.value.problems[0].path.startswith("in_axes")
    assert "Fix:" in str(e.value)


def test_a_tuple_of_axes_for_an_array():
    """Two axes at once are refused, with the way to map twice."""
    axes = ((0, 1), None)
    with pytest.raises(sa.BindError, match="decisions point at"):
        sa.vmap(fn, in_axes=axes)(X, W)


def test_a_place_is_no_builder():
    """A placeholder says nothing of axes."""
    spec = sa.AxesBuilder()
    with pytest.raises(sa.RecordError, match=r"is the place spec\.w, not a builder"):
        sa.vmap(fn, in_axes=(0, spec.w))


def test_a_name_that_is_no_parameter():
    """A misspelt name is refused, with the nearest and the form for one dict."""
    with pytest.raises(sa.RecordError, match="1 is not: 'ww'") as e:
        sa.vmap(fn, in_axes={"ww": None})
    assert "did you mean 'w'?" in str(e.value)
    assert "in_axes=({...},)" in str(e.value)
    assert e.value.problems[0].path == "in_axes['ww']"


def test_a_name_that_no_argument_has():
    """Where a function takes any keyword, a misspelt name is found at the call."""

    def scaled(x, **rest):
        return x * rest["scale"]

    mapped = sa.vmap(scaled, in_axes={"x": 0, "scle": None})
    with pytest.raises(sa.BindError, match="that this call does not have: 'scle'") as e:
        mapped(X, scale=X)
    assert "did you mean 'scale'?" in str(e.value)
    assert e.value.problems[0].path == "in_axes['scle']"


def test_a_name_that_may_be_absent():
    """`sa.optional` says that an argument need not be there."""

    def scaled(x, **rest):
        return x * rest.get("scale", 1.0)

    mapped = sa.vmap(scaled, in_axes={"x": 0, "scale": sa.optional(None)})
    np.testing.assert_array_equal(mapped(X), X)
    np.testing.assert_array_equal(mapped(X, scale=W), XW)


def test_names_of_a_function_without_a_signature():
    """Positional arguments of such a function have no names to be found by."""
    with pytest.raises(sa.BindError, match="that this call does not have: 'w'"):
        sa.vmap(Unsigned(), in_axes={"w": None})(X, W)


class Unsigned:
    """A callable that hides what it takes."""

    __signature__ = "none"

    def __call__(self, *args):
        """The product."""
        return args[0] * args[1]


def test_too_few_entries():
    """The argument without an entry is named."""
    with pytest.raises(sa.BindError, match="1 entry for 2 positional arguments") as e:
        sa.vmap(fn, in_axes=(0,))(X, W)
    assert [(p.path, p.there) for p in e.value.problems] == [
        ("w", "has no entry in in_axes")
    ]


def test_too_many_entries():
    """The entry without an argument is named."""
    with pytest.raises(sa.BindError, match="3 entries for 2 positional arguments") as e:
        sa.vmap(fn, in_axes=(0, None, 0))(X, W)
    assert [(p.path, p.there) for p in e.value.problems] == [
        ("in_axes[2]", "has no argument")
    ]


def test_an_entry_for_a_keyword_argument():
    """An argument that is given by keyword is not counted, and the error says so."""
    with pytest.raises(sa.BindError, match="2 entries for 1 positional argument") as e:
        sa.vmap(fn, in_axes=(0, None))(X, w=W)
    (problem,) = e.value.problems
    assert problem.there == "w was given by keyword"


def test_one_builder_for_two_arguments():
    """A bare builder is for one argument alone."""
    with pytest.raises(sa.BindError, match="one builder, for the only argument"):
        sa.vmap(fn, in_axes=sa.AxesBuilder())(X, X)


def test_arguments_are_named_as_the_function_names_them():
    """A leaf is told by the argument in which it is."""

    def several(x, *rest, last):
        return x

    with pytest.raises(sa.BindError, match="do not have the axis") as e:
        sa.vmap(several)({"a": 1.0}, 2.0, [3.0], last=(4.0,))
    assert [p.path for p in e.value.problems] == [
        "x['a']",
        "rest[0]",
        "rest[1][0]",
        "last[0]",
    ]


def test_too_many_arguments_are_pythons_to_name():
    """A call that the function cannot take fails as it would without `vmap`."""
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        sa.vmap(fn)(X, X, X)


def test_the_fix_is_in_the_form_of_the_axes():
    """Where `in_axes` is a dict, what to type is a key of it."""
    with pytest.raises(
        sa.BindError, match=r"share it:  in_axes\['b'\] = None"
    ) as caught:
        sa.vmap(lambda a, b: a * b, in_axes={"a": 0})(X, 5.0)
    assert caught.value.problems[0].path == "b"
    fixed = sa.vmap(lambda a, b: a * b, in_axes={"a": 0, "b": None})(X, 5.0)
    np.testing.assert_array_equal(fixed, X * 5)


def test_the_fix_for_keywords_is_a_tuple():
    """An entry for one argument is written as a tuple of one."""
    fix = re.escape("in_axes=(0,), or by name: in_axes={'a': 0, ...}")
    with pytest.raises(sa.BindError, match=fix) as caught:
        sa.vmap(lambda a, b: a * b, in_axes=(0, None))(a=X, b=2.0)
    assert caught.value.problems[0].path == "in_axes[0]"
