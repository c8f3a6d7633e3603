"""Decisions, rules and stages as data, and how they read."""

import copy
import pickle
import re

import attrs
import pytest
from attrs.exceptions import FrozenInstanceError

import staged_axes as sa
from staged_axes._record.axes import AXES
from staged_axes._record.decisions import (
    Decision,
    Default,
    Mounted,
    Rule,
    Stage,
    conflict,
    pattern_text,
)
from staged_axes._words.paths import Index, Name
from staged_axes._words.provenance import Source

PATH = (Name("wheel"), Index(2), Name("drag"))


def decision(**changes):
    """A decision of the stage sysid."""
    made = Decision(
        path=PATH,
        payload=0,
        stage=Stage("sysid", 1),
        source=Source("train.py", 12),
        order=0,
    )
    return attrs.evolve(made, **changes)


def rule(**changes):
    """A rule of no stage."""
    made = Rule(
        pattern="**/drag",
        payload=None,
        stage=Stage(None, 1),
        source=Source("train.py", 13),
        order=1,
    )
    return attrs.evolve(made, **changes)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
def test_undecided_is_one_object(make):
    """`UNDECIDED` stays itself, and is not None."""
    assert make(sa.UNDECIDED) is sa.UNDECIDED
    assert pickle.loads(pickle.dumps(sa.UNDECIDED)) is sa.UNDECIDED
    assert sa.UNDECIDED is not None
    assert repr(sa.UNDECIDED) == "sa.UNDECIDED"


def test_stages_are_told_apart_by_name_and_owner():
    """Two modules that use one name for a stage are still two modules."""
    assert Stage("a", 1) == Stage("a", 1, override=True)
    assert hash(Stage("a", 1)) == hash(Stage("a", 1, override=True))
    assert len({Stage("a", 1), Stage("a", 2), Stage("b", 1), Stage(None, 1)}) == 4


@pytest.mark.parametrize(
    ("made", "code", "by", "place"),
    [
        (decision(), "spec.wheel[2].drag = 0", "sysid  train.py:12", None),
        (
            decision(payload=None, optional=True),
            "spec.wheel[2].drag = sa.optional(None)",
            "sysid  train.py:12",
            None,
        ),
        (
            decision(payload=sa.STATIC, stage=Stage(None, 1)),
            "spec.wheel[2].drag = sa.STATIC",
            "train.py:12",
            None,
        ),
        (
            decision(payload=sa.per_leaf(len)),
            "spec.wheel[2].drag = sa.per_leaf(len)",
            "sysid  train.py:12",
            None,
        ),
        (
            decision(payload=Mounted(None)),
            "spec.wheel[2].drag = a mounted builder",
            "sysid  train.py:12",
            None,
        ),
        (
            rule(),
            "sa.rule(spec, '**/drag', None)",
            "train.py:13",
            "sa.rule(spec, '**/drag')",
        ),
        (
            rule(under=PATH, payload=-1, optional=True),
            "sa.rule(spec.wheel[2].drag, '**/drag', sa.optional(-1))",
            "train.py:13",
            "sa.rule(spec.wheel[2].drag, '**/drag')",
        ),
    ],
    ids=["int", "optional", "static", "late", "mount", "rule", "rule below"],
)
def test_as_code(made, code, by, place):
    """A decision and a rule read as the line that made them, and say who it was."""
    assert made.code(AXES) == code
    assert str(made) == by
    assert made.place == (place or "spec.wheel[2].drag")


def test_as_code_of_another_name():
    """What was not given by a builder is called as it was given."""
    assert decision().code(AXES, "in_axes[0]") == "in_axes[0].wheel[2].drag = 0"
    assert rule().code(AXES, "axes") == "sa.rule(axes, '**/drag', None)"


def test_a_default_reads_as_who_decided():
    """A default is called by its label."""
    source = Source("train.py", 3)
    default = Default(path=(), payload=0, source=source)
    assert str(default) == "default  train.py:3"
    assert str(attrs.evolve(default, label="in_axes=0")) == "in_axes=0  train.py:3"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/kernel", "'**/kernel'"),
        (re.compile("kern.*"), "re.compile('kern.*')"),
        (re.compile("k", re.IGNORECASE), "re.compile('k', re.IGNORECASE)"),
        (len, "len"),
        (lambda path, leaf: True, "<lambda>"),
        (Name, "Name"),
        (Name("x"), "Name"),
        (..., "..."),
        (True, "True"),
        (("a", "b"), "tuple"),
    ],
    ids=str,
)
def test_pattern_text(pattern, expected):
    """A pattern is shown in short, and no `repr` of the user's is called."""
    assert pattern_text(pattern) == expected


def test_mounts_are_told_apart_by_their_record():
    """Two mounts are equal if they mount one record, however equal the records."""
    one, other = [], []
    assert Mounted(one) == Mounted(one)
    assert hash(Mounted(one)) == hash(Mounted(one))
    assert Mounted(one) != Mounted(other)


@pytest.mark.parametrize(
    ("name", "told"), [("calibrate", "'calibrate'"), (None, "'late'")], ids=str
)
def test_conflict(name, told):
    """The error has both decisions as data, and says how the later may win."""
    new = decision(payload=None, stage=Stage(name, 1), source=Source("late.py", 7))
    found = conflict(decision(), new, AXES)
    assert type(found) is sa.ConflictError
    assert isinstance(found, ValueError)
    first, second = found.problems
    assert (first.path, first.axis, first.stage, first.file, first.line) == (
        "spec.wheel[2].drag = 0",
        0,
        "sysid",
        "train.py",
        12,
    )
    assert (second.path, second.axis, second.stage, second.file, second.line) == (
        "spec.wheel[2].drag = None",
        None,
        name,
        "late.py",
        7,
    )
    assert f"with spec.stage({told}, override=True):" in str(found)


def test_decisions_are_frozen():
    """What was decided cannot be changed behind the record's back."""
    with pytest.raises(FrozenInstanceError):  # noqa: PT011 (older attrs give no text)
        decision().payload = 1
    assert not hasattr(decision(), "__dict__")
