"""One declaration for the axis and the data: what varies, and what stays as it is."""

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
from value_trees import (
    Strict,
    Sys,
    examples,
    kinds_and_bits,
    leaves_of,
    message,
    system,
    text,
    trees,
)


def shared():
    """A builder that shares all that nobody decides."""
    return sa.AxesBuilder(default=None)


def positions(n=4):
    """Another position for each of n systems."""
    return jnp.arange(3.0 * n).reshape(n, 3)


# Property ---------------------------------------------------------------------------


@given(trees(), st.integers(1, 4), st.booleans())
def test_what_was_varied_fits(tree, n, is_early):
    """A varied value binds against the value of one example, and is the batch."""
    spec = shared()
    (one,) = examples(tree, 1)
    keyed, _ = jtu.tree_flatten_with_path(tree)
    for keys, field in keyed:
        if is_early or field.axis is None or field.axis != 0:
            sa.record(spec, jtu.keystr(keys), field.axis)
    arrays = {
        jtu.keystr(keys): field.batch(n)
        for keys, field in keyed
        if field.axis is not None
    }
    many = spec.vary(one, arrays)
    bound = spec.bind(many, like=one)
    assert bound.batch_size == n
    batched = [field.batch(n) for field in leaves_of(tree)]
    assert [kinds_and_bits(x) for x in jtu.tree_leaves(many)] == [
        kinds_and_bits(x) for x in batched
    ]
    apart = bound.unstack(many)
    assert list(map(kinds_and_bits, apart)) == list(
        map(kinds_and_bits, examples(tree, n))
    )


@given(trees(), st.integers(1, 3))
def test_a_second_draw_replaces_the_first(tree, n):
    """Drawing again from a varied value is drawing from the value of one example."""
    spec = shared()
    (one,) = examples(tree, 1)
    keyed = [(k, f) for k, f in jtu.tree_flatten_with_path(tree)[0] if f.axis]
    if not keyed:
        return
    for keys, field in keyed:
        sa.record(spec, jtu.keystr(keys), field.axis)
    first, second = (
        {jtu.keystr(k): np.repeat(f.batch(n), m, f.axis) for k, f in keyed}
        for m in (1, 2)
    )
    again = spec.vary(spec.vary(one, first), second, like=one)
    assert kinds_and_bits(again) == kinds_and_bits(spec.vary(one, second))


# What it does -----------------------------------------------------------------------


def test_one_nested_field():
    """One field three levels down varies, in one line, and the result is the loop's."""

    def fn(s):
        return s.link.inertia.pos * s.link.inertia.mass * s.dt * len(s.link.names)

    spec = shared()
    one = system(("torso", "leg"), 0.5)
    many = spec.vary(one, {"link.inertia.pos": positions()})
    out = sa.vmap(fn, in_axes=(spec,))(many)
    loop = [positions()[k] * 2.0 * 0.5 * 2 for k in range(4)]
    assert np.array_equal(out, loop)


def test_nothing_else_is_copied():
    """Leaves that do not vary are the same objects, and so are the arrays put in."""
    one, array = system(), positions()
    many = shared().vary(one, {"link.inertia.pos": array})
    assert many.link.inertia.pos is array
    assert many.link.inertia.mass is one.link.inertia.mass
    assert many.damping is one.damping
    assert many.link.names is one.link.names
    assert one.link.inertia.pos.shape == (3,)


def test_the_axis_is_recorded_once():
    """What varies is recorded for the stage and line that varies it, and only once."""
    spec = shared()
    with spec.stage("randomise"):
        spec.vary(system(), {"link.inertia.pos": positions()})
    (decision,) = spec.__record__.entries().decisions
    assert decision.place == "spec.link.inertia.pos"
    assert decision.payload == 0
    assert decision.stage.name == "randomise"
    assert decision.source.file == __file__
    stamp = spec.__record__.stamp()
    spec.vary(system(), {"link.inertia.pos": positions(7)})
    assert spec.__record__.stamp() == stamp


def test_early_decisions_are_kept():
    """An axis that was decided early holds for the array, whoever decided it."""
    spec = shared()
    with spec.stage("early"):
        spec.link = -1
        spec.link.inertia.mass = None
    many = spec.vary(system(), {"link.inertia.pos": positions().T})
    assert many.link.inertia.pos.shape == (3, 4)
    assert len(spec.__record__.entries().decisions) == 2


def test_rules_and_defaults_say_axes_too():
    """Where a rule maps a leaf, its axis holds, and nothing is recorded."""
    spec = shared()
    sa.rule(spec, "**/pos", 1)
    many = spec.vary(system(), {"link.inertia.pos": positions().T})
    assert spec.bind(many).batch_size == 4
    assert not spec.__record__.entries().decisions


def test_a_decision_above_that_shares():
    """A place below one that is shared may vary: the nearer decision wins."""
    spec = shared()
    with spec.stage("base"):
        spec.link = None
    with spec.stage("randomise"):
        many = spec.vary(system(), {"link.inertia.pos": positions()})
    assert spec.bind(many).batch_size == 4


def test_places_instead_of_text():
    """A place of the builder names what varies as well as its text does."""
    spec = shared()
    arrays = {spec.link.inertia.pos: positions(), "damping": np.ones((4, 2, 2))}
    many = spec.vary(system(), arrays)
    assert many.damping.shape == (4, 2, 2)
    assert many.link.inertia.pos.shape == (4, 3)


def test_a_tree_for_a_place_with_several_leaves():
    """A subtree varies by a tree of the same leaves, whatever its static data."""
    spec = shared()
    inertia = system().link.inertia.replace(pos=positions(), mass=np.ones(4))
    many = spec.vary(system(), {"link.inertia": inertia})
    assert many.link.inertia.mass.shape == (4,)
    (decision,) = spec.__record__.entries().decisions
    assert decision.place == "spec.link.inertia"


def test_a_tree_of_which_one_axis_was_decided():
    """Early decisions inside a subtree hold; only the other leaves are recorded."""
    spec = shared()
    spec.link.inertia.pos = 1
    inertia = system().link.inertia.replace(pos=positions().T, mass=np.ones(4))
    spec.vary(system(), {"link.inertia": inertia})
    places = [d.place for d in spec.__record__.entries().decisions]
    assert places == ["spec.link.inertia.pos", "spec.link.inertia.mass"]


def test_python_numbers_and_keys_vary():
    """A field that is a Python number, or a typed key, varies by an array of such."""
    keys = jax.random.split(jax.random.key(0), 3)
    one = {"dt": 0.01, "key": keys[0], "n": 3}
    arrays = {"dt": np.array([0.1, 0.2, 0.3]), "key": keys, "n": np.arange(3)}
    many = shared().vary(one, arrays)
    assert many["key"].shape == (3,)


def test_under_jit():
    """Traced arrays are put in, and the program is traced once for all draws."""
    spec, one, traces = shared(), system(), []

    @jax.jit
    def total(array):
        traces.append(array)
        many = spec.vary(one, {"link.inertia.pos": array})
        return sa.vmap(lambda s: s.link.inertia.pos.sum(), in_axes=(spec,))(many)

    assert total(positions()).tolist() == [3.0, 12.0, 21.0, 30.0]
    assert total(positions() * 2).tolist() == [6.0, 24.0, 42.0, 60.0]
    assert len(traces) == 1


def test_a_class_that_validates():
    """A class that refuses all but arrays is built from arrays alone."""
    many = shared().vary(Strict(np.ones(2), "s"), {"x": np.ones((3, 2))})
    assert type(many) is Strict
    assert many.x.shape == (3, 2)


def test_varied_further():
    """Other places of a varied value vary too, where one example is at hand."""
    spec, one = shared(), system()
    first = spec.vary(one, {"link.inertia.pos": positions()})
    both = spec.vary(first, {"damping": np.ones((4, 2, 2))}, like=one)
    assert spec.bind(both, like=one).batch_size == 4
    assert both.link.inertia.pos is first.link.inertia.pos


def test_rebuilt_with_other_static_data():
    """The record serves a model that was edited after it was made."""
    spec = shared()
    spec.vary(system(), {"link.inertia.pos": positions()})
    edited = system(("a", "b", "c"), 0.2)
    many = spec.vary(edited, {"link.inertia.pos": positions()})
    out = sa.vmap(lambda s: s.link.inertia.pos * s.dt, in_axes=(spec,))(many)
    assert np.array_equal(out, positions() * jnp.float32(0.2))


# Mistakes ---------------------------------------------------------------------------


def refused(arrays, spec=None, value=None, like=None):
    """The error for some arrays; the record is as it was."""
    spec = shared() if spec is None else spec
    stamp = spec.__record__.entries()
    with pytest.raises(sa.BindError, match=r".") as e:
        spec.vary(system() if value is None else value, arrays, like=like)
    assert spec.__record__.entries() == stamp
    return e


def test_a_wrong_length():
    """Arrays of different lengths are named, with the leaf that has the other size."""
    arrays = {
        "link.inertia.pos": positions(),
        "link.inertia.mass": np.ones(4),
        "damping": np.ones((5, 2, 2)),
    }
    e = refused(arrays)
    assert text(e) == message("""
        the mapped leaves do not agree on the batch size: 1 differs.

          value.link.inertia.pos  f32[4,3]    axis 0 has size 4                     LINE
          value.damping           f64[5,2,2]  axis 0 has size 5, but 4 in 2 leaves  LINE

          Fix: is value.damping the same for all 4? Then  spec.damping = None ; else \
give it that size
        """)
    assert {p.kind for p in e.value.problems} == {"size"}


def test_a_wrong_shape():
    """An array has the shape of the field with the batch axis put in."""
    e = refused({"link.inertia.pos": np.ones((4, 2))})
    assert text(e) == message("""
        1 leaf does not have the shape that the template asks for.

          value.link.inertia.pos  f64[4,2]  axis 0: the template (3,) asks for (4, 3)  \
LINE

          Fix: make its shape (4, 3)
        """)
    (problem,) = e.value.problems
    assert (problem.kind, problem.shape) == ("shape", (4, 2))


def test_varied_twice_in_one_call():
    """One leaf under two names is an error that has both."""
    arrays = {"link.inertia": system().link.inertia, "link.inertia.mass": np.ones(4)}
    e = refused(arrays)
    row = [p for p in e.value.problems if "too" in p.asked]
    assert [p.kind for p in row] == ["twice"]
    e = refused({"damping": np.ones((4, 2, 2)), "['damping']": np.ones((4, 2, 2))})
    assert text(e) == message("""
        1 leaf is varied twice.

          value.damping  varied by spec.damping  varied by spec['damping'] too  LINE

          Fix: keep one of the two
        """)


def test_varied_twice_one_after_the_other():
    """Varying a varied value needs the value of one example, to know the shapes."""
    spec = shared()
    many = spec.vary(system(), {"link.inertia.pos": positions()})
    e = refused({"link.inertia.pos": positions() * 2}, spec, many)
    assert text(e) == message("""
        1 leaf is varied twice.

          value.link.inertia.pos  f32[4,3] already  axis 0: an array of this very \
shape  LINE

          Fix: was it varied before? Then give the value as it was before, or \
like=..., the value of one example
               otherwise give the array a batch axis
        """)


def test_a_static_field():
    """Static data is no leaf and cannot vary."""
    e = refused({"link.names": np.ones(4), "dt": np.ones(4)})
    assert text(e) == message("""
        2 decisions point at static fields.

          spec.link.names = 0  value.link.names is a static field of Link  LINE
          spec.dt = 0          value.dt is a static field of Sys           LINE

          Fix: static data is the same in the whole batch: make it a leaf to vary it
        """)


def test_a_name_that_is_not_there():
    """A misspelt path is an error with the nearest name."""
    e = refused({"link.inertia.poss": positions()})
    assert text(e) == message("""
        1 decision points at something this value does not have.

          spec.link.inertia.poss = 0  value.link.inertia is an Inertia with pos, mass  \
LINE

          Fix: did you mean  spec.link.inertia.pos = 0 ?
        """)


def test_a_mapped_leaf_without_an_array():
    """What was decided to be mapped has to vary: nothing is batched by accident."""
    spec = shared()
    spec.damping = 0
    e = refused({"link.inertia.pos": positions()}, spec)
    assert text(e) == message("""
        1 leaf is mapped, but was given no array.

          value.damping  f32[2,2]  axis 0, but there is no array for it  LINE

          Fix: give each of them an array; where they were varied before: like=..., \
the value of one example
        """)


def test_a_builder_that_maps_by_default():
    """Where all that nobody decides is mapped, few arrays are not enough."""
    spec = sa.AxesBuilder(default=0)
    e = refused({"link.inertia.pos": positions()}, spec)
    assert text(e) == message("""
        2 leaves are mapped, but were given no array.

          value.link.inertia.mass  f32[]     axis 0, but there is no array for it  \
default  LINE
          value.damping            f32[2,2]  axis 0, but there is no array for it  \
default  LINE

          Fix: sa.AxesBuilder(default=None) shares all that nobody decides
        """)


def test_other_numbers():
    """Ints for a float field would change the computation in silence."""
    e = refused({"link.inertia.mass": np.arange(4)})
    assert text(e) == message("""
        1 array has other numbers than the leaf that it varies.

          value.link.inertia.mass  f32[]  given i64[4]: other numbers  LINE

          Fix: array.astype(float32)
        """)


@pytest.mark.parametrize(
    ("arrays", "kind", "row"),
    [
        ({"cap": np.ones(4)}, "empty", ("None", "an array of many")),
        (
            {"damping": [1.0, 2.0]},
            "not-array",
            ("f32[2,2]", "given a list, which is no array"),
        ),
        (
            {"link.inertia": {"pos": positions()}},
            "leaves",
            ("Inertia of 2 leaves", "given dict of 1 leaf"),
        ),
    ],
    ids=["none", "list", "tree"],
)
def test_places_that_cannot_vary(arrays, kind, row):
    """None, a list of numbers and a tree of other leaves are refused with the facts."""
    (problem,) = refused(arrays).value.problems
    assert problem.kind == kind
    assert (problem.there, problem.asked) == row


def test_a_leaf_that_is_no_array():
    """A function or a string among the leaves does not vary."""
    value = {"act": len, "x": np.ones(2)}
    (problem,) = refused({"act": np.ones(4)}, value=value).value.problems
    assert problem.kind == "not-array"
    assert problem.asked == "to vary, but it is no array"


def test_several_places_at_once():
    """A slice names several leaves, which one array cannot vary."""
    value = {"layers": [{"w": 1.0}, {"w": 2.0}]}
    e = refused({"layers[:].w": np.ones(4)}, value=value)
    assert text(e) == message("""
        1 path names several places, and there is one array.

          spec.layers[:].w  2 places  one array  LINE

          Fix: name each of them: {'layers[0].w': ..., 'layers[1].w': ...}
        """)


def test_all_that_is_wrong_at_once():
    """Faults of places, of arrays and of the record are in one error."""
    spec = shared()
    spec.lnk = None
    arrays = {
        "dt": np.ones(4),
        "damping": np.ones((4, 2, 2), int),
        "link.inertia.pos": positions()[:, :2],
    }
    kinds = {p.path: p.kind for p in refused(arrays, spec).value.problems}
    assert kinds == {
        "spec.dt = 0": "static",
        "value.damping": "dtype",
        "spec.lnk = None": "unknown",
        "value.link.inertia.pos": "shape",
    }


def test_a_conflict_between_stages():
    """A place that another stage shares cannot be varied without override."""
    spec = shared()
    with spec.stage("base"):
        spec.damping = None
    arrays = {"damping": np.ones((4, 2, 2)), "link.inertia.pos": positions()}
    with (
        spec.stage("randomise"),
        pytest.raises(sa.ConflictError, match="decided differently by two stages"),
    ):
        spec.vary(system(), arrays)
    assert len(spec.__record__.entries().decisions) == 1
    with spec.stage("randomise", override=True):
        many = spec.vary(system(), arrays)
    assert spec.bind(many).batch_size == 4


def test_a_template_that_does_not_fit():
    """Drawing again checks against the example that is given."""
    spec, one = shared(), system()
    many = spec.vary(one, {"link.inertia.pos": positions()})
    e = refused(
        {"link.inertia.pos": positions()},
        spec,
        many,
        one.replace(damping=jnp.ones(3)),
    )
    (problem,) = e.value.problems
    assert (problem.kind, problem.path) == ("shape", "value.damping")


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ([1.0], "vary takes a dict from place to array, not a list"),
        ({0: 1.0}, "vary takes places of this builder, as text or as spec.x, not int"),
        ({shared().x: 1.0}, "not a place of another builder"),
        ({"a b": 1.0}, r"'a b' is no path into a value \(column 3\)"),
    ],
    ids=["list", "int", "other-builder", "no-path"],
)
def test_what_names_no_place(arrays, sentence):
    """A key is the text of a path, or a place of this very builder."""
    with pytest.raises(sa.RecordError, match=sentence):
        shared().vary(system(), arrays)


def test_a_declared_class_is_checked():
    """With a class, misspelt names and static fields are refused as they are read."""
    spec = sa.AxesBuilder(Sys, default=None)
    with pytest.raises(sa.RecordError, match="Inertia has no field 'poss'"):
        spec.vary(system(), {"link.inertia.poss": positions()})
    with pytest.raises(sa.RecordError, match=r"Sys\.dt is a static field"):
        spec.vary(system(), {"dt": positions()})


def test_nothing_varies():
    """Without arrays nothing is mapped, and there is no batch."""
    assert "no leaf is mapped" in text(refused({}))
