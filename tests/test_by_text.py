"""Places and leaves that are named by text."""

import dataclasses
import re

import numpy as np
import pytest

import staged_axes as sa


@dataclasses.dataclass
class Wheel:
    drag: float
    label: str = dataclasses.field(default="", metadata={"static": True})


def said(spec):
    """Place and axis of each decision."""
    return [(d.place, d.payload) for d in spec.__record__.own().decisions]


def rules(spec):
    """The place of each rule, and what it decides."""
    return [(r.place, r.payload, r.optional) for r in spec.__record__.own().rules]


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("wheel.drag", "spec.wheel.drag"),
        ("layers[2].w", "spec.layers[2].w"),
        ("layers[:].w", "spec.layers[:].w"),
        ("params['world'].mass", "spec.params['world'].mass"),
        ("['params']['world'].mass", "spec['params']['world'].mass"),
        ("bind.x", "spec.bind.x"),
        ("bind", "spec.bind"),
    ],
)
def test_record(path, place):
    """A decision by text is the decision that code would write."""
    spec = sa.AxesBuilder(default=None)
    sa.record(spec, path, 0)
    assert said(spec) == [(place, 0)]
    assert repr(sa.at(spec, path)) == f"<place {place}>"


def test_record_below_a_place():
    """A path goes on from a place; the empty one is the place itself."""
    spec = sa.AxesBuilder(default=None)
    sa.record(spec.layers[0], "w", 0)
    sa.record(spec.layers[1], "", 1)
    assert said(spec) == [("spec.layers[0].w", 0), ("spec.layers[1]", 1)]


def test_record_at_the_root():
    """The empty path of a builder decides the whole value."""
    spec = sa.AxesBuilder(default=0)
    sa.record(spec, "", None)
    spec.x = 1
    value = {"x": np.ones((2, 3)), "y": np.ones(4)}
    assert spec.bind(value).leaf_axes == (1, None)


def test_record_takes_all_that_code_takes():
    """Optional and late decisions, and builders, can be recorded by text."""
    spec, inner = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    sa.record(spec, "a", sa.optional(0))
    sa.record(spec, "b", sa.per_leaf(len))
    sa.record(spec, "c", inner)
    inner.x = 0
    decisions = spec.__record__.entries().decisions
    assert [(d.place, d.optional) for d in decisions] == [
        ("spec.a", True),
        ("spec.b", False),
        ("spec.c", False),
        ("spec.c.x", False),
    ]


def test_names_are_checked():
    """With a class, names in texts are checked as names in code."""
    spec = sa.AxesBuilder(Wheel, default=None)
    for use in (sa.at, lambda spec, path: sa.record(spec, path, 0)):
        with pytest.raises(sa.RecordError, match="Wheel has no field 'darg'"):
            use(spec, "darg")
        with pytest.raises(sa.RecordError, match=r"Wheel\.label is a static field"):
            use(spec, "label")


USES = {
    "at": lambda spec: sa.at(spec, "x"),
    "record": lambda spec: sa.record(spec, "x", 0),
    "rule": lambda spec: sa.rule(spec, "x", 0),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("spec", [{}, None, "spec", 0], ids=repr)
def test_there_must_be_a_builder(use, spec):
    """Each function says that it needs a builder."""
    with pytest.raises(sa.RecordError, match="decisions are recorded in a builder"):
        use(spec)


# Rules --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("**/kernel", "'**/kernel'"),
        (re.compile("k"), "re.compile('k')"),
        (max, "max"),
        (..., "..."),
        (True, "True"),
        (Wheel, "Wheel"),
    ],
    ids=str,
)
def test_rule(pattern, text):
    """Every kind of pattern is taken."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, pattern, 0)
    sa.rule(spec.a[0], pattern, sa.optional(None))
    assert rules(spec) == [
        (f"sa.rule(spec, {text})", 0, False),
        (f"sa.rule(spec.a[0], {text})", None, True),
    ]


@pytest.mark.parametrize("pattern", [None, 0, 1.5, b"x", sa.AxesBuilder().x], ids=str)
def test_no_patterns(pattern):
    """What can match nothing is refused."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.RecordError, match="a rule's pattern is a glob") as e:
        sa.rule(spec, pattern, 0)
    assert [p.kind for p in e.value.problems] == ["pattern"]
    assert rules(spec) == []


def test_a_rule_mounts_no_builder():
    """A rule decides axes; a builder is mounted at a place."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.RecordError, match="a builder is mounted at a place"):
        sa.rule(spec, "**", sa.AxesBuilder())
    assert rules(spec) == []


def test_the_same_rule_again():
    """Within a stage the same pattern at the same place is an assignment."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, "a", 0)
    sa.rule(spec, "b", 0)
    sa.rule(spec, "a", 1)
    with spec.stage("sysid"):
        sa.rule(spec, "b", 2)
    assert [(r.pattern, r.payload) for r in spec.__record__.own().rules] == [
        ("b", 0),
        ("a", 1),
        ("b", 2),
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        {"a"},
        {"a": 1},
        object(),
        re.compile(b"k"),
        (3, 4),
        sa.optional(0),
        np.array([1]),
    ],
    ids=["set", "dict", "object", "bytes", "ints", "optional", "array"],
)
def test_what_can_be_no_pattern(pattern):
    """It is refused at the line that writes it."""
    spec = sa.AxesBuilder(default=0)
    with pytest.raises(
        sa.RecordError, match=r"^a rule's pattern is a glob, "
    ) as caught:
        sa.rule(spec, pattern, 0)
    assert caught.value.problems[0].kind == "pattern"
