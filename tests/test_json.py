"""The record as text and back: nothing is lost, and later writes have the same fate."""

import copy
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

import json_names
import staged_axes as sa
from staged_axes._record.decisions import Mounted


def again(spec):
    """The builder that comes back from the text of another."""
    return sa.AxesBuilder.from_json(spec.to_json())


def held(record, owners):
    """All that a record holds, with who decided as numbers in order of appearance."""

    def plain(entry, what):
        payload = entry.payload
        if isinstance(payload, Mounted):
            payload = ("builder", held(payload.record, owners))
        owner = owners.setdefault(entry.stage.owner, len(owners))
        return (
            what,
            payload,
            (entry.stage.name, entry.stage.override, owner),
            (entry.source.file, entry.source.line),
            entry.optional,
        )

    number = owners.setdefault(record.owner, len(owners))
    own = record.own()
    return (
        number,
        record.label,
        record.default,
        (record.source.file, record.source.line),
        [plain(d, d.path) for d in own.decisions],
        [
            plain(r, (r.pattern, r.under))
            for r in sorted(own.rules, key=lambda r: r.order)
        ],
    )


def assert_same(a, b):
    """Two builders hold the same."""
    assert held(a.__record__, {}) == held(b.__record__, {})
    assert a.__type__ is b.__type__


@pytest.mark.parametrize(
    "axis",
    [
        0,
        -3,
        None,
        sa.STATIC,
        sa.optional(2),
        sa.per_leaf(json_names.by_size),
        sa.per_leaf(json_names.jitted),
        sa.per_leaf(json_names.Model.by_class),
        sa.from_node(json_names.by_size),
        sa.from_node(len),
    ],
    ids=str,
)
def test_axes(axis):
    """Every form of an axis comes back."""
    spec = sa.AxesBuilder(default=None)
    spec.x = axis
    assert_same(again(spec), spec)


@pytest.mark.parametrize(
    "default",
    [0, None, sa.UNDECIDED, sa.STATIC, sa.per_leaf(json_names.by_size)],
    ids=str,
)
def test_defaults(default):
    """Every form of a default comes back."""
    spec = sa.AxesBuilder(default=default)
    assert_same(again(spec), spec)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a.b",
        "['a b']['']",
        "[0][-1]",
        "[:].x[1:3][::2]",
        "[('a', 1)]",
        "[True][None][1.5]",
        "['class'].é['\"\\n\\\\']",
        "[b'x']",
    ],
)
def test_paths(path):
    """Every step that has a text comes back."""
    spec = sa.AxesBuilder(default=None)
    sa.record(spec, path, 0)
    sa.rule(sa.at(spec, path), "*", 1)
    assert_same(again(spec), spec)


@pytest.mark.parametrize(
    "pattern",
    [
        "layers/*/w",
        "",
        re.compile("a(b)"),
        re.compile("(?i)x"),
        re.compile("x #", re.VERBOSE | re.DOTALL | re.ASCII),
        json_names.is_kernel,
    ],
    ids=str,
)
def test_patterns(pattern):
    """Globs, regular expressions and functions come back."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, pattern, 0)
    assert_same(again(spec), spec)


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (json_names.Model, json_names.Model),
        (json_names.Box[json_names.Wheel], json_names.Box),
    ],
    ids=["class", "generic"],
)
def test_class(cls, expected):
    """The declared class comes back, and names are checked again."""
    spec = again(sa.AxesBuilder(cls, default=None))
    assert spec.__type__ is expected
    with pytest.raises(sa.RecordError, match="has no field 'drog'"):
        spec.drog = 0


def test_from_tree():
    """A builder that was made from a tree calls its default by the same name."""
    spec = sa.AxesBuilder.from_tree({"a": 0, "b": [None, 1]})
    assert_same(again(spec), spec)


def test_mounted_builders():
    """A builder that is mounted twice is one builder when it comes back."""
    inner, outer = sa.AxesBuilder(default=None), sa.AxesBuilder(default=0)
    outer.left = inner
    with inner.stage("inner"):
        inner.mass = 0
    outer.right = inner
    outer.left.mass = 0
    back = again(outer)
    assert_same(back, outer)
    left, right = (
        d.payload.record
        for d in back.__record__.own().decisions
        if isinstance(d.payload, Mounted)
    )
    assert left is right


def test_order_among_mounted_builders():
    """Who wrote first is kept between a builder and one that is mounted in it."""
    inner, outer = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    inner.x = 0
    outer.here = inner
    with outer.stage("fix", override=True):
        outer.here.x = 1
    inner.y = 2
    with outer.stage("fix", override=True):
        outer.here.y = None
    value = {"here": {"x": np.ones((2, 3)), "y": np.ones((2, 2, 3))}}
    assert again(outer).bind(value).leaf_axes == outer.bind(value).leaf_axes


def test_merged_builders():
    """What came from another builder is still another's stage."""
    a, b = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    with a.stage("same"):
        a.x = 0
        sa.rule(a, "*", 0)
    with b.stage("same"):
        b.y = 1
        sa.rule(b, "*", 0)
    a.whole = b
    merged = sa.merge(a, b)
    assert_same(again(merged), merged)
    assert_same(again(again(merged)), merged)


def test_copies_have_the_same_text():
    """A copy of a builder, with what is mounted in it, is written as the builder is."""
    spec, inner = sa.AxesBuilder(default=0), sa.AxesBuilder(default=None)
    spec.x = inner
    inner.y = 1
    assert copy.deepcopy(spec).to_json() == spec.to_json()


def test_later_writes_conflict_as_before():
    """A stage that decides differently is a conflict with the line that was saved."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        spec.x = 0
    (decision,) = spec.__record__.own().decisions
    back = again(spec)
    with (
        pytest.raises(sa.ConflictError, match="decided differently by two stages") as e,
        back.stage("second"),
    ):
        back.x = 1
    old, _ = e.value.problems
    assert (old.stage, old.file, old.line) == ("first", __file__, decision.source.line)


def test_the_same_stage_may_write_again():
    """A stage that is opened again under its name replaces what it decided."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        spec.x.y = 0
    back = again(spec)
    with back.stage("first"):
        back.x = 1
    assert [d.payload for d in back.__record__.own().decisions] == [1]


def test_two_readings_are_two_builders():
    """Builders from one text have nothing in common, as copies have."""
    spec = sa.AxesBuilder(default=None)
    spec.x = 0
    text = spec.to_json()
    a, b = sa.AxesBuilder.from_json(text), sa.AxesBuilder.from_json(text)
    b.x = 1
    with pytest.raises(sa.ConflictError, match="decided differently by two stages"):
        sa.merge(a, b)


names = st.sampled_from(["x", "y", "x.y", "x.y.z", "x['a b']", "[0]", "[:].x", ""])
axes = st.sampled_from(
    [0, 1, None, sa.STATIC, sa.optional(0), sa.per_leaf(json_names.by_size)]
)
patterns = st.sampled_from(["*", "**/x", re.compile("x"), json_names.is_kernel])
writes = st.tuples(
    st.integers(0, 2),
    st.sampled_from([None, "a", "b"]),
    st.booleans(),
    st.one_of(
        st.tuples(st.just("decide"), names, axes),
        st.tuples(st.just("rule"), patterns, axes),
        st.tuples(st.just("mount"), names, st.integers(0, 2)),
        st.tuples(st.just("delete"), names, st.none()),
    ),
)


def write(builders, which, stage, override, what):
    """One write to one of some builders; True if it was taken."""
    spec = builders[which]
    kind, place, payload = what

    def act():
        if kind == "rule":
            sa.rule(spec, place, payload)
        elif kind == "decide":
            sa.record(spec, place, payload)
        elif kind == "mount" and place:
            sa.record(spec, place, builders[payload])
        elif kind == "delete":
            spec.__record__.forget(sa.at(spec, place).__path__)

    try:
        if stage is None:
            act()
        else:
            with spec.stage(stage, override=override):
                act()
    except (sa.ConflictError, sa.RecordError):
        return False
    return True


@given(st.lists(writes, max_size=12), writes)
def test_any_record_comes_back(before, after):
    """Whatever was written comes back, and a later write has the same fate."""
    builders = [sa.AxesBuilder(default=n) for n in (0, None, sa.UNDECIDED)]
    for one in before:
        write(builders, *one)
    spec = builders[0]
    text = spec.to_json()
    back = sa.AxesBuilder.from_json(text)
    assert_same(back, spec)
    assert back.to_json() == text
    both = [d.path for d in spec.__record__.entries().decisions]
    assert [d.path for d in back.__record__.entries().decisions] == both
    assert len(spec.__record__.entries().conflicts) == len(
        back.__record__.entries().conflicts
    )
    _, *later = after
    if later[2][0] != "mount":
        assert write([back], 0, *later) == write([spec], 0, *later)
        assert_same(back, spec)
