"""What stands in a record, as one thread of control sees it."""

import pytest

from staged_axes._record.decisions import Decision, Rule, Stage
from staged_axes._record.standing import Standing
from staged_axes._words.paths import Name, parse
from staged_axes._words.provenance import Source

A, B = Stage("a", 1), Stage("b", 1)
LATE = Stage("late", 1, override=True)


def decision(path, payload, stage=A, order=0):
    """A decision."""
    return Decision(
        path=parse(path),
        payload=payload,
        stage=stage,
        source=Source("train.py", 1),
        order=order,
    )


def rule(pattern, payload, stage=A, order=0, under=()):
    """A rule."""
    return Rule(
        pattern=pattern,
        payload=payload,
        stage=stage,
        source=Source("train.py", 1),
        order=order,
        under=under,
    )


def filled(*decisions):
    """What stands after these writes."""
    standing = Standing()
    for made in decisions:
        standing.write(made)
    return standing


X0, X1 = decision("x", 0), decision("x", 1, order=1)
XY, XY_B = decision("x.y", 0, order=2), decision("x.y", 0, B, order=3)


def test_write_replaces_at_and_below():
    """A write removes what its stage wrote at and below, and tells what went."""
    standing = filled(X0, XY, XY_B)
    change = standing.write(X1)
    assert standing.decisions() == (X1, XY_B)
    assert change.came == (X1,)
    assert set(change.went) == {X0, XY}


def test_write_by_a_stage_that_overrides():
    """A stage that overrides removes what others wrote at and below."""
    late = decision("x", 2, LATE, order=4)
    standing = filled(X0, XY_B)
    assert set(standing.write(late).went) == {X0, XY_B}
    assert standing.decisions() == (late,)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (decision("x", 1), None),
        (decision("x", 0, B), None),
        (decision("x", 1, B), X0),
        (decision("x", 1, LATE), None),
        (decision("['x']", 1, B), X0),
        (decision("x.y", 1, B), None),
        (decision("", 1, B), None),
    ],
    ids=["same stage", "agrees", "differs", "overrides", "item", "below", "above"],
)
def test_rival(new, expected):
    """Another stage's decision for the very place, if it differs, is in conflict."""
    assert filled(X0).rival(new) == expected


def test_a_path_is_no_prefix_of_a_longer_name():
    """Below is a matter of whole steps."""
    standing = filled(decision("xy", 0), decision("x.y", 0, order=1))
    standing.write(decision("x", None, order=2))
    assert [d.path for d in standing.decisions()] == [(Name("xy"),), (Name("x"),)]


def test_forget():
    """What a stage may remove goes, and nothing else."""
    standing = filled(X0, XY, XY_B)
    assert standing.forget(parse("x.z"), A).went == ()
    assert standing.forget(parse("x.y"), B).went == (XY_B,)
    assert set(standing.forget(parse(""), A).went) == {X0, XY}
    assert standing.decisions() == ()


def test_rules_are_replaced_by_pattern_stage_and_place():
    """The same pattern in the same stage at the same place is written once."""
    kept = [rule("a", 0, B), rule("b", 0), rule("a", 0, under=parse("x"))]
    new = rule("a", 1, order=1)
    standing = Standing(rules=[rule("a", 0), *kept])
    change = standing.write_rule(new)
    assert standing.rules() == (*kept, new)
    assert (change.came, change.went) == ((new,), (rule("a", 0),))
    standing.revert(change)
    assert set(standing.rules()) == {rule("a", 0), *kept}


def test_order():
    """Decisions are given in the order of writing, whenever they were put in."""
    standing = Standing([XY_B, X1, XY])
    assert standing.decisions() == (X1, XY, XY_B)


def test_revert():
    """A change is undone, but for what came in its place since."""
    standing = filled(X0, XY_B)
    change = standing.write(decision("x", 2, LATE, order=4))
    back = standing.revert(change)
    assert standing.decisions() == (X0, XY_B)
    assert back.came == change.went
    change = standing.write(X1)
    newest = decision("x", 3, order=5)
    standing.write(newest)
    standing.revert(change)
    assert standing.decisions() == (XY_B, newest)
