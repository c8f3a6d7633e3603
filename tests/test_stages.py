import numpy as np
import pytest

import staged_axes as sa


class Order:
    """Takes down the order in which stages run."""

    def __init__(self):
        self.ran = []

    def stage(self, name):
        """A stage that does nothing else."""

        def run(axes, state):
            self.ran.append(name)
            return state

        return run


def ran(stages):
    """The order in which stages `(name, after)` run."""
    pipe, order = sa.Pipeline(default=0), Order()
    for name, after in stages:
        pipe.add(name, order.stage(name), after=after)
    pipe.run(np.ones(2))
    return "".join(order.ran)


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        pytest.param([("c", ()), ("a", ()), ("b", ())], "cab", id="as added"),
        pytest.param([("a", ("c",)), ("b", ()), ("c", ())], "cab", id="one later"),
        pytest.param([("a", "c"), ("b", ()), ("c", "b")], "bca", id="a chain"),
        pytest.param([("a", ()), ("b", "a"), ("c", "a")], "abc", id="already so"),
        pytest.param([("a", ["b", "c"]), ("c", "b"), ("b", ())], "bca", id="diamond"),
    ],
)
def test_order(stages, expected):
    """Stages run as they were added, except that what they need comes first."""
    assert ran(stages) == expected


@pytest.mark.parametrize(
    ("stages", "text", "rows"),
    [
        pytest.param(
            [("a", "a")],
            "stage 'a' waits for itself",
            [("a", "after a")],
            id="alone",
        ),
        pytest.param(
            [("x", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("y", ())],
            "3 stages wait for each other: 'a' after 'b' after 'c' after 'a'",
            [("a", "after b"), ("b", "after c"), ("c", "after a")],
            id="three of five",
        ),
    ],
)
def test_cycle(stages, text, rows):
    """Stages that wait for each other are named, and no other ones."""
    with pytest.raises(sa.PipelineError, match=text) as caught:
        ran(stages)
    assert [(p.path, p.asked) for p in caught.value.problems] == rows


def test_unknown_stage_to_wait_for():
    """A name that no stage has is an error with the nearest names."""
    with pytest.raises(sa.PipelineError, match="no stage 'nodse'") as caught:
        ran([("nodes", ()), ("delays", ("nodse",))])
    assert "did you mean 'nodes'?" in str(caught.value)
    assert caught.value.problems[0].path == "after=('nodse',) of stage 'delays'"


class Both:
    """A stage with both hooks."""

    def record(self, axes):
        axes.mass = 0

    def build(self, state):
        return {**state, "mass": np.ones(3)}


class OnlyRecord:
    """A stage that only decides."""

    def record(self, axes):
        axes.mass = 0


class OnlyBuild:
    """A stage that only builds."""

    def build(self, state):
        return {**state, "mass": np.ones(3)}


@pytest.mark.parametrize(
    ("stages", "axes"),
    [
        pytest.param([Both()], (0,), id="both"),
        pytest.param([OnlyRecord(), OnlyBuild()], (0,), id="one of each"),
        pytest.param([OnlyBuild(), OnlyRecord()], (0,), id="one of each, reversed"),
        pytest.param(
            [lambda axes, state: (Both().record(axes), Both().build(state))[1]],
            (0,),
            id="function",
        ),
    ],
)
def test_forms(stages, axes):
    """Functions and objects with either hook make one pipeline."""
    pipe = sa.Pipeline(default=None)
    for i, stage in enumerate(stages):
        pipe.add(f"stage {i}", stage)
    staged = pipe.run({})
    assert staged.bound.leaf_axes == axes
    assert list(staged.value) == ["mass"]


async def late(axes, state):
    """Not awaited by anybody."""
    return state


def piecemeal(axes, state):
    """A generator."""
    yield state


@pytest.mark.parametrize(
    ("stage", "there"),
    [
        pytest.param(3, "int", id="number"),
        pytest.param(object(), "object", id="no hooks"),
        pytest.param(Both, "class Both", id="class"),
        pytest.param(lambda axes: None, "function <lambda>", id="one argument"),
        pytest.param(late, "function late", id="async"),
        pytest.param(piecemeal, "function piecemeal", id="generator"),
    ],
)
def test_no_stage(stage, there):
    """What is no stage is refused at the line that adds it."""
    pipe = sa.Pipeline(default=0)
    with pytest.raises(sa.PipelineError, match="stage 'x' cannot be") as caught:
        pipe.add("x", stage)
    assert caught.value.problems[0].there == there
    assert "record(axes), build(state)" in str(caught.value)


@pytest.mark.parametrize("name", ["", None], ids=["empty", "none"])
def test_no_name(name):
    """A stage needs a name."""
    with pytest.raises(sa.PipelineError, match="needs a name"):
        sa.Pipeline(default=0).add(name, Both())


def test_name_taken():
    """Two stages cannot have one name."""
    pipe = sa.Pipeline(default=0)
    pipe.add("world", Both())
    with pytest.raises(sa.PipelineError, match="'world' already") as caught:
        pipe.add("world", Both())
    assert "pipe.replace('world', stage)" in str(caught.value)


def test_returns_none():
    """A stage that forgets its `return` is named, and what it decided is taken back."""
    pipe = sa.Pipeline(default=0)

    @pipe.stage
    def world(axes, state):
        axes.mass = 0

    with pytest.raises(sa.PipelineError, match="'world' was given a state") as caught:
        pipe.run({"mass": np.ones(2)})
    assert "return state" in str(caught.value)
    assert pipe.spec.__record__.own().decisions == ()
