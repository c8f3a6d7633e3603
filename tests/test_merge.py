"""Several builders as one."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
import winners

X = np.zeros((3, 3, 3), np.float32)


@dataclasses.dataclass
class Wheel:
    drag: Any


def said(spec):
    """Place, axis and stage of each decision."""
    return [(d.place, d.payload, d.stage.name) for d in spec.__record__.own().decisions]


def axes(spec, value):
    """The axes for a value whose axes all have one size."""
    return spec.bind(value, axis_size=3).leaf_axes


def test_merge():
    """A merge says what all say, in the order in which it was written."""
    one, other = sa.AxesBuilder(default=2), sa.AxesBuilder(default=sa.UNDECIDED)
    other.b = 0
    with one.stage("sysid"):
        one.a = None
    sa.rule(other, "**/c", 1)
    merged = sa.merge(one, other)
    assert said(merged) == [("spec.b", 0, None), ("spec.a", None, "sysid")]
    assert axes(merged, {"a": X, "b": X, "c": X, "d": X}) == (None, 0, 1, 2)


def test_merge_leaves_its_builders_alone():
    """Neither the merge nor its builders see later writes to the others."""
    one, other = sa.AxesBuilder(default=2), sa.AxesBuilder(default=2)
    one.a = 0
    merged = sa.merge(one, other)
    one.b = other.c = merged.d = 1
    assert [place for place, *_ in said(merged)] == ["spec.a", "spec.d"]
    assert [place for place, *_ in said(one)] == ["spec.a", "spec.b"]
    assert [place for place, *_ in said(other)] == ["spec.c"]


def test_merge_follows_mounts():
    """A builder that is mounted in a merged one goes on counting."""
    inner, one = sa.AxesBuilder(default=1), sa.AxesBuilder(default=2)
    one.wheel = inner
    merged = sa.merge(one)
    inner.drag = None
    assert axes(merged, {"wheel": {"drag": X, "size": X}}) == (None, 1)


@pytest.mark.parametrize("swap", [False, True], ids=["in order", "swapped"])
def test_merge_conflict(swap):
    """Two builders that decide one place differently cannot be merged."""
    one, other = sa.AxesBuilder(default=2), sa.AxesBuilder(default=2)
    one.a.b = 0
    other["a"]["b"] = None
    pair = (other, one) if swap else (one, other)
    with pytest.raises(sa.ConflictError, match="decided differently by two") as e:
        sa.merge(*pair)
    assert [p.path for p in e.value.problems] == [
        "spec.a.b = 0",
        "spec['a']['b'] = None",
    ]


@pytest.mark.parametrize("swap", [False, True], ids=["in order", "swapped"])
def test_merge_with_an_override(swap):
    """A stage overrides what was written before it, wherever its builder stands."""
    one, other = sa.AxesBuilder(default=2), sa.AxesBuilder(default=2)
    one.a.b = 0
    with other.stage("late", override=True):
        other.a = None
    merged = sa.merge(*((other, one) if swap else (one, other)))
    assert said(merged) == [("spec.a", None, "late")]


def test_merge_of_defaults():
    """Different defaults cannot be merged; an undecided one gives way."""
    with pytest.raises(sa.ConflictError, match="different defaults") as e:
        sa.merge(sa.AxesBuilder(default=0), sa.AxesBuilder(default=None))
    assert [p.path for p in e.value.problems] == ["default=0", "default=None"]
    late = sa.per_leaf(len)
    for default in (0, None, late):
        merged = sa.merge(
            sa.AxesBuilder(default=sa.UNDECIDED),
            sa.AxesBuilder(default=default),
            sa.AxesBuilder(default=default),
        )
        assert merged.__record__.default == default


def test_merge_keeps_a_common_class():
    """A merge of builders with one class checks names; of several, it does not."""
    typed = [sa.AxesBuilder(Wheel), sa.AxesBuilder(Wheel)]
    with pytest.raises(sa.RecordError, match="no field 'darg'"):
        sa.merge(*typed).darg = 0
    sa.merge(*typed, sa.AxesBuilder()).darg = 0
    sa.merge().darg = 0


@pytest.mark.parametrize(
    "other", [None, {}, sa.AxesBuilder().x, AssertionError], ids=str
)
def test_merge_takes_builders(other):
    """What is no builder is refused."""
    with pytest.raises(sa.RecordError, match="merge takes builders, not"):
        sa.merge(sa.AxesBuilder(), other)


@given(st.data(), winners.models())
def test_merge_in_any_order(data, model):
    """Merging in any order gives the same axes, or is a conflict in every order."""
    builders = []
    for _ in range(3):
        spec = sa.AxesBuilder(default=1)
        for w in data.draw(winners.programs(model, stages=("x",), max_size=2)):
            place = spec
            for step in w.path:
                place = place[step]
            sa.record(place, "", w.axis)
        builders.append(spec)
    found = set()
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        try:
            found.add(
                axes(sa.merge(*(builders[i] for i in order)), winners.value_of(model))
            )
        except sa.ConflictError:
            found.add("conflict")
    assert len(found) == 1
