"""What is said of a place or a leaf that a record names and a value has not."""

import collections
import dataclasses
import re
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import staged_axes as sa

X = np.zeros((3, 4), np.float32)


class Pair(NamedTuple):
    first: Any
    second: Any


@jax.tree_util.register_pytree_with_keys_class
@dataclasses.dataclass
class Wheel:
    radius: Any
    drag: Any
    label: str = "front"

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("radius"), self.radius), (key("drag"), self.drag)), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


@jax.tree_util.register_pytree_node_class
class Keyless:
    def __init__(self, radius, drag, label="front"):
        self.radius, self.drag, self.label = radius, drag, label

    def tree_flatten(self):
        return (self.radius, self.drag), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        assert all(hasattr(child, "shape") for child in children)
        return cls(*children, label)


@jax.tree_util.register_pytree_node_class
class Hidden:
    """A class that keeps its child and its static data out of sight."""

    __slots__ = ("_all",)

    def __init__(self, *held):
        self._all = held

    def tree_flatten(self):
        return self._all[:1], self._all[1:]

    @classmethod
    def tree_unflatten(cls, rest, children):
        return cls(*children, *rest)


VALUE = {
    "wheel": Wheel(X, X),
    "keyless": Keyless(X, X + 0),
    "tied": Keyless(X, X),
    "hidden": Hidden(X, "static"),
    "layers": [{"w": X, "b": X}, {"w": X, "b": X}],
    "pair": Pair(X, {"x": X}),
    "none": None,
    "empty": {},
    "text": "abc",
    "many": {f"field_{i:03}": X for i in range(300)},
    "ordered": collections.OrderedDict(b=X, a=X),
}


def miss(path, axis=0, value=VALUE):
    """The one problem of a decision, and its fix as the text has it."""
    spec = sa.AxesBuilder(default=None)
    spec.wheel = 0
    sa.record(spec, path, axis)
    with pytest.raises(sa.BindError, match=r"^1 decision points at") as e:
        spec.bind(value)
    (problem,) = e.value.problems
    assert str(e.value).endswith(f"\n\n  Fix: {problem.fix}")
    assert (problem.file, problem.stage) == (__file__, None)
    return problem


@pytest.mark.parametrize(
    ("path", "there", "fix"),
    [
        (
            "whel.drag",
            "value is a dict with wheel, empty, hidden, keyless, layers, many and 5 "
            "more",
            "did you mean  spec.wheel.drag = 0 ?",
        ),
        (
            "['whel'].drag",
            "value is a dict with wheel, empty, hidden, keyless, layers, many and 5 "
            "more",
            "did you mean  spec['wheel'].drag = 0 ?",
        ),
        (
            "wheel.darg",
            "value.wheel is a Wheel with drag, radius, label (static)",
            "did you mean  spec.wheel.drag = 0 ?",
        ),
        (
            "wheel.qqq.x",
            "value.wheel is a Wheel with radius, drag, label (static)",
            "check the path; if it may be absent:  spec.wheel.qqq.x = sa.optional(0)",
        ),
        (
            "wheel[0]",
            "value.wheel is a Wheel with radius, drag, label (static)",
            "check the path; if it may be absent:  spec.wheel[0] = sa.optional(0)",
        ),
        (
            "wheel.drag.x",
            "value.wheel.drag is f32[3,4]",
            "check the path; if it may be absent:  spec.wheel.drag.x = sa.optional(0)",
        ),
        (
            "keyless.darg",
            "value.keyless is a Keyless with drag, radius, label (static)",
            "did you mean  spec.keyless.drag = 0 ?",
        ),
        (
            "keyless[2]",
            "value.keyless is a Keyless with radius, drag, label (static)",
            "check the path; if it may be absent:  spec.keyless[2] = sa.optional(0)",
        ),
        (
            "tied.drag",
            "value.tied.drag is several children of a Keyless",
            "say which one by its position:  spec.tied[0] = 0",
        ),
        (
            "hidden.x",
            "value.hidden is a Hidden of 1",
            "check the path; if it may be absent:  spec.hidden.x = sa.optional(0)",
        ),
        (
            "layers[2].w",
            "value.layers is a list of 2",
            "check the path; if it may be absent:  spec.layers[2].w = sa.optional(0)",
        ),
        (
            "layers[0].ww",
            "value.layers[0] is a dict with w, b",
            "did you mean  spec.layers[0].w = 0 ?",
        ),
        (
            "layers[:].ww",
            "value.layers[:] is a dict with w, b",
            "did you mean  spec.layers[:].w = 0 ?",
        ),
        (
            "layers.w",
            "value.layers is a list of 2",
            "check the path; if it may be absent:  spec.layers.w = sa.optional(0)",
        ),
        (
            "pair.frist",
            "value.pair is a Pair with first, second",
            "did you mean  spec.pair.first = 0 ?",
        ),
        (
            "pair[2]",
            "value.pair is a Pair with first, second",
            "check the path; if it may be absent:  spec.pair[2] = sa.optional(0)",
        ),
        (
            "pair[1].y.z",
            "value.pair[1] is a dict with x",
            "check the path; if it may be absent:  spec.pair[1].y.z = sa.optional(0)",
        ),
        (
            "none.x",
            "value.none is None",
            "check the path; if it may be absent:  spec.none.x = sa.optional(0)",
        ),
        (
            "empty.x",
            "value.empty is an empty dict",
            "check the path; if it may be absent:  spec.empty.x = sa.optional(0)",
        ),
        (
            "text.x",
            "value.text is str",
            "check the path; if it may be absent:  spec.text.x = sa.optional(0)",
        ),
        (
            "many.feild_299",
            "value.many is a dict with field_299, field_298, field_297, field_000, "
            "field_001, field_002 and 294 more",
            "did you mean  spec.many.field_299 = 0 ?",
        ),
        (
            "ordered.c",
            "value.ordered is an OrderedDict with b, a",
            "check the path; if it may be absent:  spec.ordered.c = sa.optional(0)",
        ),
    ],
)
def test_unknown(path, there, fix):
    """A place that is not there: what is there instead, and what was meant."""
    problem = miss(path)
    assert problem.kind == "unknown"
    assert problem.there == there
    assert problem.fix == fix


@pytest.mark.parametrize("axis", [0, None, sa.STATIC, sa.per_leaf(len)], ids=str)
def test_the_fix_keeps_the_axis(axis):
    """The line to paste decides what the wrong line decided."""
    problem = miss("wheel.darg", axis)
    text = problem.path.removeprefix("spec.wheel.darg = ")
    assert problem.fix == f"did you mean  spec.wheel.drag = {text} ?"
    assert problem.axis == (axis if axis == 0 else None)


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("wheel.label", "value.wheel.label", "Wheel"),
        ("wheel['label']", "value.wheel.label", "Wheel"),
        ("keyless.label", "value.keyless.label", "Keyless"),
        ("wheel.label.x", "value.wheel.label", "Wheel"),
    ],
)
def test_static(path, name, kind):
    """A decision for static data is told so."""
    problem = miss(path)
    assert problem.kind == "static"
    assert problem.there == f"{name} is a static field of {kind}"
    assert problem.fix.startswith("remove  spec.")


def test_a_mount_for_nothing():
    """A builder that is mounted at a place that is not there is one problem."""
    problem = miss("wheels", sa.AxesBuilder(default=None))
    assert problem.path == "spec.wheels = a mounted builder"
    assert problem.fix == "did you mean  spec.wheel = a mounted builder ?"


@pytest.mark.parametrize(
    ("pattern", "code", "fix"),
    [
        ("**/darg", "'**/darg'", "did you mean  sa.rule(spec, '**/drag', 0) ?"),
        ("drag", "'drag'", "did you mean  sa.rule(spec, '**/drag', 0) ?"),
        ("wheels/*", "'wheels/*'", "did you mean  sa.rule(spec, 'wheel/*', 0) ?"),
        (
            "**/qqqq",
            "'**/qqqq'",
            "check the pattern; if it may match nothing:  sa.rule(spec, '**/qqqq', "
            "sa.optional(0))",
        ),
        (
            re.compile("darg"),
            "re.compile('darg')",
            "check the pattern; if it may match nothing:  sa.rule(spec, "
            "re.compile('darg'), sa.optional(0))",
        ),
    ],
    ids=str,
)
def test_unmatched(pattern, code, fix):
    """A rule that matches nothing is shown as it was written, with a better one."""
    spec = sa.AxesBuilder(default=None)
    spec.wheel = 0
    with spec.stage("sysid"):
        sa.rule(spec, pattern, 0)
    with pytest.raises(sa.BindError, match=r"^1 rule matches no leaf") as e:
        spec.bind(VALUE)
    (problem,) = e.value.problems
    assert (problem.kind, problem.stage) == ("unmatched", "sysid")
    assert problem.path == f"sa.rule(spec, {code}, 0)"
    assert problem.fix == fix


def test_unmatched_below_a_place():
    """The rule of a place is shown with its place, and helped by names alone."""
    spec = sa.AxesBuilder(default=0)
    sa.rule(spec.layers[:], "bb", None)
    sa.rule(spec.layers[:], "drag", None)
    with pytest.raises(sa.BindError, match=r"^2 rules match no leaf") as e:
        spec.bind({"layers": VALUE["layers"], "drag": X})
    assert [(p.path, p.fix[:50]) for p in e.value.problems] == [
        (
            "sa.rule(spec.layers[:], 'bb', None)",
            "did you mean  sa.rule(spec.layers[:], 'b', None) ?",
        ),
        (
            "sa.rule(spec.layers[:], 'drag', None)",
            "check the pattern; if it may match nothing:  sa.ru",
        ),
    ]


def test_an_optional_place_is_no_miss():
    """`optional` settles it, for a decision, a rule, a mount and what is in it."""
    inner = sa.AxesBuilder(default=None)
    inner.x.y = 0
    sa.rule(inner, "**/z", 0)
    spec = sa.AxesBuilder(default=0)
    spec.a.b = sa.optional(None)
    spec.c = sa.optional(inner)
    sa.rule(spec, "**/d", sa.optional(None))
    assert spec.bind(X).leaf_axes == (0,)


def test_keys_that_are_no_names():
    """A dict with other keys shows them: `spec["1"]` is not the key 1."""
    spec = sa.AxesBuilder(default=None)
    spec["1"] = 0
    with pytest.raises(sa.BindError, match="a dict with the keys 1, 2") as caught:
        spec.bind({1: np.ones(3), 2: np.ones(3)})
    (problem,) = caught.value.problems
    assert problem.there == "value is a dict with the keys 1, 2"
    assert problem.path == "spec['1'] = 0"


def test_a_glob_with_dots():
    """Steps of a glob are separated by `/`; one spelt as a place is told so."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, "p.dense.kernel", 0)
    with pytest.raises(sa.BindError, match="p/dense/kernel") as caught:
        spec.bind({"p": {"dense": {"kernel": np.ones((3, 2))}}})
    (problem,) = caught.value.problems
    assert problem.fix == "did you mean  sa.rule(spec, 'p/dense/kernel', 0) ?"
