"""The record that one example and a batch imply."""

import copy

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
from hypothesis import given

import staged_axes as sa
from value_trees import (
    batch,
    decide,
    examples,
    leaves_of,
    message,
    system,
    text,
    trees,
)

N = 5  # larger than any axis of a random value, so that no shape allows two axes


@given(trees())
def test_infer_gives_back_the_record(tree):
    """What made a batch is found again from the batch and one example."""
    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    values = examples(tree, N)
    many = sa.stack(values, spec)
    found = sa.infer(values[0], many)
    assert found.bind(many, like=values[0]).leaf_axes == spec.bind(many).leaf_axes
    by_hand = [
        None if f.axis is None else f.axis % (len(f.shape) + 1) for f in leaves_of(tree)
    ]
    assert list(found.bind(many).leaf_axes) == by_hand


@given(trees())
def test_infer_reads_shapes_alone(tree):
    """Abstract values say as much as concrete ones."""
    one, many = (
        jtu.tree_map(lambda x: jax.ShapeDtypeStruct(np.shape(x), np.float32), v)
        for v in (examples(tree, 1)[0], batch(tree, N))
    )
    assert sa.infer(one, many).bind(many, like=one).batch_size == N


def test_largest_subtrees_are_named():
    """A subtree that is mapped on one axis is one decision."""
    one = {"a": [1.0, np.ones(2)], "b": {"c": 1.0, "d": len, "e": np.ones(2)}}
    many = copy.deepcopy(one)
    many["a"] = [np.ones(3), np.ones((3, 2))]
    many["b"]["e"] = np.ones((2, 3))
    decisions = sa.infer(one, many).__record__.entries().decisions
    assert [(d.place, d.payload) for d in decisions] == [
        ("spec['a']", 0),
        ("spec['b']['e']", 1),
    ]
    assert {d.source.file for d in decisions} == {__file__}


def test_all_on_one_axis():
    """A value that is mapped as a whole gives a default and no decision."""
    spec = sa.infer(system(), jax.vmap(lambda _: system())(np.zeros(7)))
    assert repr(spec) == "<AxesBuilder: 0 decisions, 0 rules, default 0>"


def test_static_data_is_not_read():
    """One example may have other static data than the batch."""
    many = system(("other",), 0.5)
    many = many.replace(damping=jnp.ones((7, 2, 2)))
    spec = sa.infer(system(), many)
    assert spec.bind(many).leaf_axes == (None, None, 0)


def test_an_axis_that_could_be_another():
    """From (3,) to (3, 3) either axis is possible, so nothing is guessed."""
    with pytest.raises(sa.BindError, match="more than one axis") as e:
        sa.infer({"w": np.ones(3)}, {"w": np.ones((3, 3))})
    assert text(e) == message("""
        the shapes of 1 leaf allow more than one axis.

          value['w']  f64[3,3], and f64[3] in the template  its axis may be 0 or 1

          Fix: sa.infer(template, batched, axis=0) says which, where several are \
possible
        """)
    (problem,) = e.value.problems
    assert (problem.kind, problem.shape) == ("ambiguous", (3, 3))


@pytest.mark.parametrize(("axis", "found"), [(0, 0), (1, 1), (-1, 1), (-2, 0)])
def test_the_axis_where_several_are_possible(axis, found):
    """The user says which; leaves that are clear are not touched by that."""
    one = {"clear": np.ones(2), "w": np.ones(3)}
    many = {"clear": np.ones((2, 3)), "w": np.ones((3, 3))}
    assert sa.infer(one, many, axis=axis).bind(many).leaf_axes == (1, found)


def test_an_axis_that_is_not_among_them():
    """A wish that the shapes do not allow decides nothing."""
    with pytest.raises(sa.BindError, match="its axis may be 0 or 1"):
        sa.infer(np.ones((3, 2)), np.ones((3, 3, 2)), axis=2)


def test_more_than_an_axis():
    """A leaf whose shape changed otherwise has no batch axis."""
    one = {"a": np.ones(3), "b": np.ones(3), "c": np.ones(3), "d": np.ones(3)}
    many = {
        "a": np.ones((5, 4)),
        "b": np.ones((2, 5, 3)),
        "c": np.ones(5),
        "d": np.ones((5, 3)),
    }
    with pytest.raises(sa.BindError, match="one axis more") as e:
        sa.infer(one, many)
    assert text(e) == message("""
        3 leaves do not have one axis more than in the template.

          value['a']  f64[5,4], and f64[3] in the template    not one axis more
          value['b']  f64[2,5,3], and f64[3] in the template  not one axis more
          value['c']  f64[5], and f64[3] in the template      not one axis more

          Fix: a mapped leaf has the template's shape with one axis put in
        """)


def test_leaves_on_one_side_only():
    """Leaves of the template and of the batch have to be the same."""
    with pytest.raises(sa.BindError, match="differ in 2 leaves") as e:
        sa.infer({"a": 1.0, "b": 1.0}, {"a": np.ones(3), "c": "text"})
    assert text(e) == message("""
        template and batch differ in 2 leaves.

          value['c']  str in the batch       no such leaf in the template
          value['b']  float in the template  no such leaf in the batch

          Fix: give two values that are built alike
        """)


def test_what_is_no_array_becomes_none():
    """A function in place of an array has no shape to compare."""
    with pytest.raises(sa.BindError, match="not one axis more"):
        sa.infer({"a": 1.0, "f": len}, {"a": np.ones(3), "f": np.ones(3)})


def test_sizes_that_differ():
    """Leaves with different numbers of examples are no batch."""
    with pytest.raises(sa.BindError, match="do not agree on the batch size") as e:
        sa.infer((1.0, 1.0, 1.0), (np.ones(3), np.ones(4), np.ones(3)))
    assert [p.path for p in e.value.problems] == ["value[0]", "value[1]"]


def test_nothing_mapped():
    """Two values of one shape imply no batch."""
    with pytest.raises(sa.BindError, match="no leaf is mapped"):
        sa.infer((1.0, np.ones(2)), (2.0, np.ones(2)))


@pytest.mark.parametrize("axis", [True, 0.0, "0"], ids=repr)
def test_what_is_no_axis(axis):
    """The axis of a wish is an int."""
    with pytest.raises(sa.RecordError, match="an axis is an int or None"):
        sa.infer(np.ones(3), np.ones((3, 3)), axis=axis)
