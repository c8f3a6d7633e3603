"""`AxesBuilder`: defaults, mounts, merges, axes trees, and how it shows itself."""

import copy
import dataclasses
import io
import pickle
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
import winners

X = np.zeros((3, 3, 3), np.float32)


@dataclasses.dataclass
class Wheel:
    drag: Any
    label: str = dataclasses.field(default="front", metadata={"static": True})


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class Static:
    """A node whose static data is part of its structure."""

    x: Any
    label: Any = "early"

    def tree_flatten_with_keys(self):
        return ((jax.tree_util.GetAttrKey("x"), self.x),), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


class Pair(NamedTuple):
    first: Any
    second: Any


def said(spec):
    """Place, axis and stage of each decision that counts."""
    return [
        (d.place, d.payload, d.stage.name)
        for d in spec.__record__.entries().decisions
        if not d.is_mount
    ]


def axes(spec, value):
    """The axes for a value whose axes all have one size."""
    return spec.bind(value, axis_size=3).leaf_axes


# The class and the default ------------------------------------------------------


@pytest.mark.parametrize(
    ("default", "expected"),
    [(0, 0), (-1, 2), (np.int64(1), 1), (None, None), (sa.STATIC, None)],
    ids=str,
)
def test_default(default, expected):
    """The default holds where nobody decides."""
    assert axes(sa.AxesBuilder(default=default), {"x": X}) == (expected,)


def test_default_is_zero():
    """Without a word every leaf is mapped on its first axis, as in `jax.vmap`."""
    assert sa.AxesBuilder().bind({"x": X, "y": X[0]}).leaf_axes == (0, 0)


@pytest.mark.parametrize("cls", [0, None, "Wheel", Wheel(1), [Wheel]], ids=repr)
def test_class(cls):
    """The one positional argument is a class, or nothing at all."""
    if cls is None:
        assert repr(sa.AxesBuilder(cls)) == repr(sa.AxesBuilder())
        return
    with pytest.raises(sa.RecordError, match="takes the class of the value") as e:
        sa.AxesBuilder(cls)
    assert [p.kind for p in e.value.problems] == ["class"]


@pytest.mark.parametrize("name", [3, "", None, len], ids=repr)
def test_a_stage_has_a_name(name):
    """A stage without a name is refused, as is a decorator without parentheses."""
    with pytest.raises(sa.RecordError, match="a stage needs a name") as e:
        sa.AxesBuilder().stage(name)
    assert '@spec.stage("sysid")' in str(e.value)


# Mounts -------------------------------------------------------------------------


def inner_builder():
    """A module's own builder."""
    inner = sa.AxesBuilder(default=1)
    inner.drag = 0
    sa.rule(inner, "**/bias", None)
    return inner


CAR = {"mass": X, "wheel": {"drag": X, "bias": X, "size": X}, "bias": X}


def test_mount():
    """A mounted builder's decisions, rules and default hold below its place alone."""
    spec = sa.AxesBuilder(default=2)
    spec.wheel = inner_builder()
    # bias, mass, wheel.bias, wheel.drag, wheel.size
    assert axes(spec, CAR) == (2, 2, None, 0, 1)


def test_later_writes_to_a_mounted_builder_count():
    """What a mounted builder records later counts too, and so does what it forgets."""
    inner, spec = inner_builder(), sa.AxesBuilder(default=2)
    spec.wheel = inner
    inner.size = 2
    del inner.drag
    assert axes(spec, CAR) == (2, 2, None, 1, 2)


def test_decisions_below_a_mount():
    """The outer builder may decide below a mount; the nearest to a leaf wins."""
    inner, spec = sa.AxesBuilder(default=None), sa.AxesBuilder(default=2)
    inner.drag = 0
    spec.wheel = inner
    spec.wheel.size = 1
    spec.wheel.drag.x = 2
    value = {"wheel": {"drag": {"x": X, "y": X}, "size": X, "bias": X}}
    assert axes(spec, value) == (None, 2, 0, 1)


def test_a_decision_above_a_mount():
    """Paths beat defaults, also that of a mounted builder."""
    spec = sa.AxesBuilder(default=2)
    spec.robot = 0
    spec.robot.wheel = inner_builder()
    assert axes(spec, {"robot": CAR}) == (0, 0, 0, 0, 0)


def test_an_outer_rule_beats_the_default_of_a_mount():
    """Rules beat defaults, also that of a mounted builder."""
    spec = sa.AxesBuilder(default=2)
    spec.wheel = inner_builder()
    sa.rule(spec, "**/size", None)
    assert axes(spec, CAR) == (2, 2, None, 0, None)


def test_mount_without_a_default():
    """A mounted builder that leaves its default undecided leaves it to the outer."""
    inner, spec = sa.AxesBuilder(default=sa.UNDECIDED), sa.AxesBuilder(default=2)
    inner.drag = 0
    spec.wheel = inner
    assert axes(spec, CAR) == (2, 2, 2, 0, 2)


def test_mount_of_a_decision_for_the_whole():
    """A builder that decides its whole value decides the place where it is mounted."""
    inner, spec = sa.AxesBuilder(default=1), sa.AxesBuilder(default=2)
    sa.record(inner, "", None)
    spec.wheel = inner
    assert axes(spec, CAR) == (2, 2, None, None, None)


def test_mounts_in_mounts():
    """Builders are mounted in builders, and the innermost default is nearest."""
    wheel, car, spec = (sa.AxesBuilder(default=i) for i in range(3))
    car.wheel = wheel
    spec.car = car
    wheel.drag.x = None
    value = {"car": {"wheel": {"drag": {"x": X}, "size": X}, "mass": X}, "y": X}
    assert axes(spec, value) == (1, None, 0, 2)


def test_one_builder_at_two_places():
    """A builder that is mounted twice counts in both places, and is checked in both."""
    wheel, spec = sa.AxesBuilder(default=1), sa.AxesBuilder(default=2)
    wheel.drag = 0
    spec.left = wheel
    spec.right = wheel
    value = {"left": {"drag": X, "size": X}, "right": {"drag": X}}
    assert axes(spec, value) == (0, 1, 0)
    with pytest.raises(sa.BindError, match="1 decision points at") as e:
        axes(spec, {"left": {"drag": X}, "right": {"size": X}})
    assert [p.path for p in e.value.problems] == ["spec.right.drag = 0"]


def test_mount_at_a_slice():
    """A builder can be mounted at every child of a node."""
    layer, spec = sa.AxesBuilder(default=None), sa.AxesBuilder(default=2)
    layer.w = 0
    spec.layers[:] = layer
    spec.layers[1].w = 1
    assert axes(spec, {"layers": [{"w": X, "b": X}] * 2, "x": X}) == (
        None,
        0,
        None,
        1,
        2,
    )


@pytest.mark.parametrize("by", ["attribute", "override", "stage"])
def test_mount_by_a_stage(by):
    """However a builder is mounted, all that it says counts, early or late."""
    inner, spec = inner_builder(), sa.AxesBuilder(default=2)
    if by == "attribute":
        spec.wheel = inner
    else:
        with spec.stage("late", override=by == "override"):
            spec.wheel = inner
    inner.size = None
    assert axes(spec, CAR) == (2, 2, None, 0, None)


def test_a_mount_is_an_assignment():
    """Mounting replaces what the stage wrote there and below, and is replaced."""
    spec = sa.AxesBuilder(default=2)
    spec.wheel.size = None
    spec.wheel = inner_builder()
    assert axes(spec, CAR) == (2, 2, None, 0, 1)
    spec.wheel = 0
    assert axes(spec, CAR) == (2, 2, 0, 0, 0)
    spec.wheel = inner_builder()
    del spec.wheel
    assert axes(spec, CAR) == (2, 2, 2, 2, 2)


def test_a_mount_and_the_outer_builder_may_disagree():
    """Two builders that decide one place differently are a conflict at bind."""
    inner, spec = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    spec.wheel = inner
    spec.wheel.drag = None
    with inner.stage("wheels"):
        inner.drag = 0
    with pytest.raises(sa.ConflictError, match="1 place is decided differently") as e:
        axes(spec, CAR)
    assert [(p.path, p.stage) for p in e.value.problems] == [
        ("spec.wheel.drag = None", None),
        ("spec.wheel.drag = 0", "wheels"),
    ]


@pytest.mark.parametrize("late", ["inner", "outer"])
def test_override_across_a_mount(late):
    """The later of two builders may override what the other one decided."""
    inner, spec = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    spec.wheel = inner
    first, second = (spec.wheel, inner) if late == "inner" else (inner, spec.wheel)
    owner = inner if late == "inner" else spec
    first.drag.x = 1
    with owner.stage("late", override=True):
        second.drag = 2
    value = {"wheel": {"drag": {"x": X}}}
    assert axes(spec, value) == (2,)


def test_two_stages_may_mount_one_builder():
    """The same builder at the same place by two stages is no conflict, and is one."""
    inner, spec = inner_builder(), sa.AxesBuilder(default=2)
    for name in ("first", "second"):
        with spec.stage(name):
            spec.wheel = inner
    assert axes(spec, CAR) == (2, 2, None, 0, 1)
    with spec.stage("third"), pytest.raises(sa.ConflictError, match="by two stages"):
        spec.wheel = sa.AxesBuilder()


def test_stages_of_one_name_in_two_builders():
    """A stage's name says nothing across builders."""
    inner, spec = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    spec.wheel = inner
    with inner.stage("sysid"):
        inner.drag = 0
    with spec.stage("sysid"):
        spec.wheel.drag = 1
    with pytest.raises(sa.ConflictError, match="decided differently"):
        axes(spec, CAR)


def test_an_optional_mount():
    """An optional mount may find nothing; where it is, it is checked as any other."""
    spec = sa.AxesBuilder(default=2)
    spec.wheel = sa.optional(inner_builder())
    assert axes(spec, {"mass": X}) == (2,)
    assert axes(spec, CAR) == (2, 2, None, 0, 1)


def test_a_mount_below_a_missing_place():
    """A mount that finds nothing is an error, once for it and each of its decisions."""
    spec = sa.AxesBuilder(default=2)
    spec.wheel = inner_builder()
    with pytest.raises(sa.BindError, match=r"2 decisions point at .*; 1 rule matches"):
        axes(spec, {"mass": X})


def test_no_builder_in_itself():
    """A builder cannot be mounted in itself, directly or by way of others."""
    one, two, three = sa.AxesBuilder(), sa.AxesBuilder(), sa.AxesBuilder()
    with pytest.raises(sa.RecordError, match="cannot be mounted inside itself"):
        one.x = one
    one.two = two
    two.three = three
    with pytest.raises(sa.RecordError, match="cannot be mounted inside itself"):
        three.x.y[:] = sa.optional(one)
    assert said(three) == []
    one.again = copy.copy(one)
    assert {d.place for d in one.__record__.entries().decisions} == {
        "spec.two",
        "spec.two.three",
        "spec.again",
        "spec.again.two",
        "spec.again.two.three",
    }


# Axes trees ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "value", "expected"),
    [
        (0, {"a": X, "b": X}, (0, 0)),
        (None, {"a": X, "b": X}, (None, None)),
        ({"a": 0, "b": None}, {"a": X, "b": [X, X]}, (0, None, None)),
        ({"a": [0, -1]}, {"a": (X, X)}, (0, 2)),
        ((0, None), [X, X], (0, None)),
        (Pair(0, {"x": 1}), Pair(X, {"x": X}), (0, 1)),
        (Static(1, "early"), Static(X, "late"), (1,)),
        (Static(None, object()), Static({"y": X}, "late"), (None,)),
        ({"s": Static(0, "early")}, {"s": Static([X, X], "late")}, (0, 0)),
        ({"a": sa.STATIC, "b": np.int64(1)}, {"a": "text", "b": X}, (None, 1)),
        ({"a": lambda leaf: leaf.ndim - 1}, {"a": X}, (2,)),
        ({"a": sa.per_leaf(lambda leaf: 1)}, {"a": X}, (1,)),
        ({}, {}, ()),
    ],
    ids=str,
)
def test_from_tree(tree, value, expected):
    """An axes tree says what `jax.vmap` would read in it, whatever its statics."""
    assert axes(sa.AxesBuilder.from_tree(tree), value) == expected


def test_from_tree_with_a_builder_in_it():
    """A builder in a tree is mounted."""
    spec = sa.AxesBuilder.from_tree({"mass": None, "wheel": inner_builder(), "bias": 0})
    assert axes(spec, CAR) == (0, None, None, 0, 1)


def test_from_tree_decides_what_it_reaches():
    """A leaf that the tree does not reach is undecided."""
    spec = sa.AxesBuilder.from_tree({"a": 0})
    with pytest.raises(sa.BindError, match="nobody decided about 1 leaf") as e:
        axes(spec, {"a": X, "b": X})
    assert [p.path for p in e.value.problems] == ["value['b']"]
    spec.b = None
    assert axes(spec, {"a": X, "b": X}) == (0, None)


def test_from_tree_is_an_ordinary_record():
    """Stages go on from a tree as from anything that was recorded."""
    spec = sa.AxesBuilder.from_tree({"a": 0, "b": 1})
    assert said(spec) == [("spec['a']", 0, None), ("spec['b']", 1, None)]
    spec.a = None
    with pytest.raises(sa.ConflictError, match="by two stages"), spec.stage("late"):
        spec.b = 2
    assert axes(spec, {"a": X, "b": X}) == (None, 1)


@pytest.mark.parametrize("depth", [10, 200])
def test_from_tree_that_is_deep(depth):
    """A deep tree is read as any other."""
    tree, value = 0, X
    for _ in range(depth):
        tree, value = [tree], [value]
    assert axes(sa.AxesBuilder.from_tree(tree), value) == (0,)


@given(st.data(), winners.models())
def test_from_tree_against_jax(data, model):
    """The axes of a random prefix are those by which `jax.vmap` maps."""
    value = winners.value_of(model)

    def prefix(model):
        if model is winners.LEAF or data.draw(st.booleans()):
            return data.draw(st.sampled_from([0, 1, 2, None]))
        if isinstance(model, dict):
            return {key: prefix(model[key]) for key in sorted(model)}
        kind = type(model)
        children = [prefix(child) for child in model]
        return children if kind is list else kind(*children)

    tree = prefix(model)
    found = axes(sa.AxesBuilder.from_tree(tree), value)
    ndims = jax.vmap(
        lambda v, _: jax.tree_util.tree_map(jnp.ndim, v),
        in_axes=(tree, 0),
        out_axes=None,
    )(value, jnp.zeros(3))
    shared = [n == 3 for n in jax.tree_util.tree_leaves(ndims)]
    assert [axis is None for axis in found] == shared


# How it shows itself ------------------------------------------------------------


@pytest.fixture
def spec():
    """A builder with a bit of everything."""
    inner = sa.AxesBuilder(default=None)
    inner.x = 1
    spec = sa.AxesBuilder(default=0)
    spec.wheel.drag = None
    with spec.stage("sysid"):
        spec.layers[:].w = -1
        spec.extra = sa.optional(0)
        sa.rule(spec, "**/bias", sa.STATIC)
    spec.inner = inner
    return spec


def without_lines(text):
    """Text with `file:n` for each line of code."""
    return re.sub(r"\S*test_builder\.py:\d+", "file:n", text)


def test_str(spec):
    """`print(spec)` shows what was recorded, with stage and line."""
    assert without_lines(str(spec)) == (
        """\
AxesBuilder, default 0

stage  place                     axis               decided at
       spec.inner.x              1                  file:n
       spec.wheel.drag           None               file:n
sysid  spec.layers[:].w          -1                 file:n
sysid  spec.extra                0 if there         file:n
       spec.inner                a mounted builder  file:n
sysid  sa.rule(spec, '**/bias')  sa.STATIC          file:n"""
    )


def test_repr(spec):
    """`repr` is one line."""
    assert repr(spec) == "<AxesBuilder: 5 decisions, 1 rule, default 0>"
    assert repr(sa.AxesBuilder(default=None)) == (
        "<AxesBuilder: 0 decisions, 0 rules, default None>"
    )


def test_str_of_an_empty_builder():
    """A builder without a record shows its default."""
    assert str(sa.AxesBuilder(default=sa.UNDECIDED)).startswith(
        "AxesBuilder, default sa.UNDECIDED\n"
    )


def test_html(spec):
    """A notebook shows a table, with nothing of the user's taken for HTML."""
    spec["<b>"] = 0
    html = spec._repr_html_()
    assert html.startswith("<table><caption>AxesBuilder, default 0</caption>")
    assert "<td>spec.wheel.drag</td><td>None</td>" in html
    assert "<b>" not in html
    assert not hasattr(spec.wheel, "_repr_html_")


def test_rich(spec):
    """Rich prints the same table."""
    console = pytest.importorskip("rich.console")
    out = io.StringIO()
    console.Console(file=out, width=120).print(spec)
    lines = [line.rstrip() for line in out.getvalue().rstrip().splitlines()]
    assert lines == str(spec).splitlines()


@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda spec: pickle.loads(pickle.dumps(spec))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies(spec, make):
    """A copy is a builder of the same class with the same record."""
    twin = make(spec)
    assert type(twin) is sa.AxesBuilder
    assert str(twin) == str(spec)
    typed = make(sa.AxesBuilder(Wheel))
    with pytest.raises(sa.RecordError, match="Wheel has no field 'darg'"):
        typed.darg = 0
