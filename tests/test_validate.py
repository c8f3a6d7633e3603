"""Axes against shapes: what `jax.vmap` would take, and every reason why not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
from staged_axes._record.axes import STATIC
from staged_axes._resolve.validate import Place, check, checked_size
from staged_axes._structure.leaves import kinds
from staged_axes._words.paths import Index

axes = st.none() | st.integers(-3, 3)
shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)


def place(i):
    """Leaf number i of a value that is a list."""
    return Place("value", (Index(i),))


def checked(leaves, decided, size=None):
    """The check, where nobody in particular decided."""
    return check(kinds(leaves), decided, [None] * len(leaves), place, axis_size=size)


def takes(leaves, decided):
    """Does `jax.vmap` take these axes? The batch size, or None."""
    if all(axis is None for axis in decided):
        return None
    try:
        jax.eval_shape(jax.vmap(lambda *_: 0, in_axes=tuple(decided)), *leaves)
    except ValueError:
        return None
    return next(
        x.shape[a] for x, a in zip(leaves, decided, strict=True) if a is not None
    )


@given(st.lists(st.tuples(shapes, axes), min_size=1, max_size=4))
def test_what_jax_takes(pairs):
    """No problem is found exactly where `jax.vmap` takes the axes."""
    leaves = [np.zeros(shape, np.float32) for shape, _ in pairs]
    decided = [axis for _, axis in pairs]
    found = checked(leaves, decided)
    if all(axis is None for axis in decided):
        assert (found.batch_size, found.problems) == (None, ())
        return
    size = takes(leaves, decided)
    assert (size is not None) == (not found.problems)
    if size is not None:
        assert found.batch_size == size
        front = [
            a if a is None else a % x.ndim for x, a in zip(leaves, decided, strict=True)
        ]
        assert list(found.axes) == front


def test_every_problem_at_once():
    """An axis out of range, an object, and a size that differs, each by its place."""
    leaves = [np.zeros((3, 2)), np.zeros(3), np.zeros(4), "text", np.zeros(3)]
    found = checked(leaves, [2, 0, 0, 0, 0])
    assert [(p.kind, p.path) for p in found.problems] == [
        ("axis", "value[0]"),
        ("not-array", "value[3]"),
        ("size", "value[1]"),  # and all that agree with it
        ("size", "value[2]"),
    ]


def test_static_places_are_shared():
    """They have no axis, whatever they hold."""
    found = checked([np.zeros(3), "text", 2], [0, STATIC, STATIC])
    assert found.axes == (0, None, None)
    assert found.problems == ()


def test_a_given_size():
    """It counts where nothing is mapped, and against what is."""
    assert checked([np.zeros(3)], [None], 5).batch_size == 5
    (problem,) = checked([np.zeros(3)], [0], 5).problems
    assert (problem.kind, problem.path, problem.axis) == ("axis-size", "value[0]", 0)


@pytest.mark.parametrize("size", [0, 3, np.int64(3), None], ids=repr)
def test_sizes(size):
    """An int, or nothing."""
    assert checked_size(size, sa.BindError) == size
    assert type(checked_size(size, sa.BindError)) in (int, type(None))


@pytest.mark.parametrize("size", ["3", -1, 3.0, True, jnp.array(3)], ids=repr)
@pytest.mark.parametrize("cls", [sa.BindError, sa.BatchError])
def test_no_sizes(size, cls):
    """Anything else is refused by the class of error that is asked for."""
    with pytest.raises(cls, match="an int, 0 or more") as caught:
        checked_size(size, cls)
    assert caught.value.problems[0].path == "axis_size"
