"""What an axis may be."""

import enum
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa
from staged_axes._record.axes import AXES, Optional
from staged_axes._record.decisions import Mounted


class Axis(enum.IntEnum):
    """An int that prints as something else."""

    BATCH = 0


class Index(int):
    """An int of a class of its own."""


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (0, 0),
        (-2, -2),
        (10**30, 10**30),
        (np.int32(1), 1),
        (np.int64(-1), -1),
        (np.uint8(3), 3),
        (np.zeros(2, int).sum(), 0),
        (Axis.BATCH, 0),
        (Index(2), 2),
        (None, None),
        (sa.STATIC, sa.STATIC),
    ],
    ids=repr,
)
def test_axes(axis, expected):
    """Ints of every kind become plain ints; None and `STATIC` stay."""
    found = AXES.check(axis, "spec.x")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "late", [sa.per_leaf(len), sa.from_node(len), Mounted(None)], ids=["a", "b", "c"]
)
def test_late_axes(late):
    """What is settled at bind stays as it is."""
    assert AXES.check(late, "spec.x") is late


@pytest.mark.parametrize(
    ("axis", "kind", "fix"),
    [
        (True, "a bool", "spec.x = 0 for mapped, spec.x = None for shared"),
        (np.True_, "a bool[]", "spec.x = 0 for mapped, spec.x = None for shared"),
        (1.0, "a float", "spec.x = 0, or None for shared"),
        (np.float32(1), "an f32[]", "spec.x = 0, or None for shared"),
        (1j, "a complex", "spec.x = 0, or None for shared"),
        ("0", "a str", "spec.x = 0, or None for shared"),
        (np.zeros(3), "an f64[3]", "spec.x = 0, or None for shared"),
        (np.array(0), "an i64[]", "spec.x = 0, or None for shared"),
        (jnp.array(0), "an i32[]", "spec.x = 0, or None for shared"),
        (
            (0, 1),
            "a tuple",
            "to map over two axes, map twice: sa.vmap(sa.vmap(fn, ...), ...); for the "
            "items of a container: spec.x[0] = ...",
        ),
        (
            [0],
            "a list",
            "to map over two axes, map twice: sa.vmap(sa.vmap(fn, ...), ...); for the "
            "items of a container: spec.x[0] = ...",
        ),
        ({"a": 0}, "a dict", "spec.x = sa.AxesBuilder.from_tree({...})"),
        (len, "a function len", "spec.x = sa.per_leaf(fn) decides from each leaf"),
        (
            functools.partial(len),
            "a partial",
            "spec.x = sa.per_leaf(fn) decides from each leaf",
        ),
        (int, "a class int", "spec.x = 0, or None for shared"),
        (sa.UNDECIDED, "an Undecided", "to take a decision back:  del spec.x"),
        (sa.AUTO, "an Auto", "spec.x = 0, or None for shared"),
        (..., "an ellipsis", "spec.x = 0, or None for shared"),
    ],
    ids=str,
)
def test_no_axes(axis, kind, fix):
    """Anything else is refused by what it is, with what was probably meant."""
    with pytest.raises(sa.RecordError, match="an axis is an int or None") as e:
        AXES.check(axis, "spec.x")
    text = str(e.value)
    assert text.startswith(f"an axis is an int or None, and spec.x was given {kind}.")
    assert text.endswith(f"\n\n  Fix: {fix}")
    assert [(p.kind, p.path) for p in e.value.problems] == [("payload", "spec.x")]


WAYS = {
    "attribute": lambda spec, axis: setattr(spec.a, "b", axis),
    "item": lambda spec, axis: spec.a.__setitem__(0, axis),
    "slice": lambda spec, axis: spec.a.__setitem__(slice(None), axis),
    "record": lambda spec, axis: sa.record(spec, "a.b", axis),
    "rule": lambda spec, axis: sa.rule(spec, "**/b", axis),
    "optional": lambda spec, axis: setattr(spec, "a", sa.optional(axis)),
    "default": lambda _, axis: sa.AxesBuilder(default=axis),
    "tree": lambda _, axis: sa.AxesBuilder.from_tree({"a": axis}),
    "in_axes": lambda _, axis: sa.vmap(len, in_axes=(axis,)),
    "out_axes": lambda _, axis: sa.vmap(len, out_axes=axis),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("axis", [True, 1.0, np.zeros(3), "0"], ids=repr)
def test_no_axes_at_the_line_that_writes_them(way, axis):
    """A bad axis is refused where it is written, and nothing is recorded."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(TypeError, match="an axis is an int or None"):
        way(spec, axis)
    assert spec.__record__.own().decisions == ()
    assert spec.__record__.own().rules == ()


@pytest.mark.parametrize("make", [sa.per_leaf, sa.from_node])
@pytest.mark.parametrize("fn", [0, None, "len"], ids=repr)
def test_late_forms_take_functions(make, fn):
    """A late decision without a function is refused at once."""
    with pytest.raises(sa.RecordError, match=f"^{make.__name__} takes a function"):
        make(fn)


@pytest.mark.parametrize("make", [sa.per_leaf, sa.from_node])
def test_late_forms_are_equal_by_their_function(make):
    """Two stages that decide by one function agree."""
    assert make(len) == make(len)
    assert make(len) != make(max)
    assert sa.per_leaf(len) != sa.from_node(len)


def test_optional_once_is_enough():
    """An optional decision of an optional decision is just that."""
    assert sa.optional(sa.optional(0)) == sa.optional(0) == Optional(0)


@pytest.mark.parametrize(
    ("axis", "text"),
    [
        (0, "0"),
        (-1, "-1"),
        (None, "None"),
        (sa.STATIC, "sa.STATIC"),
        (sa.UNDECIDED, "sa.UNDECIDED"),
        (sa.per_leaf(len), "sa.per_leaf(len)"),
        (sa.from_node(functools.partial(len)), "sa.from_node(...)"),
        (Mounted(None), "a mounted builder"),
    ],
    ids=str,
)
def test_text(axis, text):
    """An axis prints as code."""
    assert AXES.text(axis) == text


def test_numpy_axes_bind_as_ints():
    """A bound axis is a plain int, whatever it was written as."""
    spec = sa.AxesBuilder(default=np.int64(-1))
    (axis,) = spec.bind(jax.ShapeDtypeStruct((2, 3), jnp.float32)).leaf_axes
    assert (axis, type(axis)) == (1, int)
