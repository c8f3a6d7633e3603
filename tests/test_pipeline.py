import itertools
import threading

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, strategies as st

import staged_axes as sa

SHAPES = {None: (2,), 0: (3, 2), 1: (2, 3)}


def said(spec):
    """Place, axis and stage of every decision and rule, in the order of writing."""
    own = spec.__record__.own()
    return [(e.place, e.payload, e.stage.name) for e in (*own.decisions, *own.rules)]


def decides(name, axis):
    """A stage that decides for one field, and puts an array there."""

    def stage(axes, state):
        sa.record(axes, name, axis)
        return {**state, name: np.ones(SHAPES[axis])}

    return stage


class Decides:
    """The same as an object with both hooks."""

    def __init__(self, name, axis):
        self.name, self.axis = name, axis

    def record(self, axes):
        sa.record(axes, self.name, self.axis)

    def build(self, state):
        return {**state, self.name: np.ones(SHAPES[self.axis])}


class WrongError(Exception):
    """What a failing stage raises."""


@frozen
class FrozenError(Exception):
    """An exception that cannot be written to."""

    text: str


def fails(axes, state):
    """A stage that decides in many ways, and raises."""
    axes.z.a = 1
    with axes.stage("inner", override=True):
        axes.a = 1
        axes.z = 1
    sa.rule(axes, "**/d", 1)
    message = "no"
    raise WrongError(message)


def notes(error):
    """The notes on an exception, also on Python 3.10."""
    return getattr(error, "__notes__", [])


# Running ------------------------------------------------------------------------


def test_run():
    """A run gives the last state and its axes, each decision under its stage's name."""
    pipe = sa.Pipeline(default=None)

    @pipe.stage
    def masses(axes, state):
        axes.mass = 0
        return {**state, "mass": np.ones(3)}

    @pipe.stage("torques")
    def _(axes, state):
        axes.torque = 1
        return {**state, "torque": np.ones((2, 3))}

    staged = pipe.run({"gravity": 9.81})
    assert list(staged.value) == ["gravity", "mass", "torque"]
    assert staged.bound.leaf_axes == (None, 0, 1)
    assert said(pipe.spec) == [
        ("spec.mass", 0, "masses"),
        ("spec.torque", 1, "torques"),
    ]
    assert "masses  tests/test_pipeline.py" in staged.bound.table().plain()


def test_decorated_function_stays():
    """The decorators give back the very function."""
    pipe = sa.Pipeline(default=0)
    fn = decides("a", 0)
    assert pipe.stage(fn) is fn
    assert pipe.stage("other")(fn) is fn
    assert repr(pipe) == "<Pipeline: stage -> other>"


def test_no_stages():
    """A pipeline without stages binds what it is given."""
    assert sa.Pipeline(default=0).run(np.ones(2)).bound.batch_size == 2


def test_class_is_checked():
    """With a class, a wrong name is refused at the line in the stage."""

    @frozen
    class Model:
        mass: float

    pipe = sa.Pipeline(Model, default=None)
    pipe.add("masses", Decides("maas", 0))
    with pytest.raises(sa.RecordError, match="no field 'maas'"):
        pipe.record()


def test_builder_with_a_default():
    """A builder has a default of its own."""
    with pytest.raises(sa.PipelineError, match="default of its own"):
        sa.Pipeline(default=None, spec=sa.AxesBuilder(default=0))


@given(st.permutations(range(5)))
def test_any_order_of_independent_stages(order):
    """The bound axes do not depend on the order in which stages were added."""

    def all_shared(axes, state):
        sa.rule(axes, "*", None)
        return state

    def below(axes, state):
        axes.deep = None
        return state

    def nearer(axes, state):
        axes.deep.x = 0
        deep = {"x": np.ones(3), "y": np.ones(2)}
        return {**state, "deep": deep}

    stages = [decides("a", 1), all_shared, below, decides("c", 0), nearer]
    pipe = sa.Pipeline(default=0)
    for i in order:
        pipe.add(f"stage {i}", stages[i])
    # In flatten order: a, c, deep.x, deep.y, z.
    assert pipe.run({"z": np.ones(2)}).bound.leaf_axes == (1, 0, 0, None, None)


@pytest.mark.parametrize("form", [decides, Decides], ids=["function", "object"])
def test_conflict_names_both_stages(form):
    """Two stages that decide one place differently are both named."""
    pipe = sa.Pipeline(default=None)
    pipe.add("world", form("mass", 0))
    pipe.add("sysid", form("mass", None))
    with pytest.raises(sa.ConflictError, match="by two stages") as caught:
        pipe.run({})
    assert [p.stage for p in caught.value.problems] == ["world", "sysid"]


def test_override():
    """A stage that may override replaces what one before it decided."""
    pipe = sa.Pipeline(default=None)
    pipe.add("world", decides("mass", 0))
    pipe.add("sysid", decides("mass", 1), override=True)
    assert pipe.run({}).bound.leaf_axes == (1,)


# Running again ------------------------------------------------------------------


def test_run_again():
    """A second run replaces all that the first one decided, in whatever way."""
    pipe = sa.Pipeline(default=None)

    @pipe.stage
    def one(axes, name):
        sa.record(axes, name, 0)
        with axes.stage("inner"):
            sa.record(axes, f"{name}_inner", 0)
        sa.rule(axes, f"**/{name}_rule", 0)
        return name

    @pipe.stage
    def two(axes, name):
        sa.record(axes, f"{name}_two", 1)
        of_rule = {f"{name}_rule": np.ones(3)}
        return of_rule | {
            n: np.ones((3, 3)) for n in (name, f"{name}_inner", f"{name}_two")
        }

    for name in ("a", "b", "a"):
        pipe.run(name)
        assert said(pipe.spec) == [
            (f"spec.{name}", 0, "one"),
            (f"spec.{name}_inner", 0, "inner"),
            (f"spec.{name}_two", 1, "two"),
            (f"sa.rule(spec, '**/{name}_rule')", 0, "one"),
        ]


def test_run_again_where_stages_change_places():
    """What a later stage decided in an earlier run is no conflict any more."""
    pipe = sa.Pipeline(default=None)
    pipe.add("first", lambda axes, names: decides(names[0], 0)(axes, {}) and names)
    pipe.add(
        "second", lambda axes, names: decides(names[1], 1)(axes, {}) and np.ones(2)
    )
    with pytest.raises(sa.BindError, match=r"spec\.b"):
        pipe.run("ab")
    with pytest.raises(sa.BindError, match=r"spec\.b"):
        pipe.run("ba")
    assert said(pipe.spec) == [("spec.b", 0, "first"), ("spec.a", 1, "second")]


def test_what_others_decided_stays():
    """A run takes back what its stages decided, and nothing else."""
    pipe = sa.Pipeline(default=None)
    pipe.spec.z = None
    pipe.add("a", decides("a", 0))
    pipe.run({"z": 1.0})
    with pipe.spec.stage("by hand"):
        pipe.spec.y = None
    pipe.run({"z": 1.0, "y": 1.0})
    assert [(place, stage) for place, _, stage in said(pipe.spec)] == [
        ("spec.z", None),
        ("spec.y", "by hand"),
        ("spec.a", "a"),
    ]


def test_start_at():
    """Stages before the one to start at do not run, and what they decided is kept."""
    pipe, ran = sa.Pipeline(default=None), []
    pipe.add("a", decides("a", 0))
    for name in "bc":
        pipe.add(name, lambda axes, state, name=name: ran.append(name) or state)
    first = pipe.run({})
    again = pipe.run(first.value, start_at="c")
    assert ran == ["b", "c", "c"]
    assert again.bound.leaf_axes == (0,)


def test_start_at_takes_back_an_override():
    """What a stage replaced is back when that stage runs again and lets it be."""
    pipe, axes_of_b = sa.Pipeline(default=None), [1, None]
    pipe.add("a", decides("a", 0))

    @pipe.stage("b", override=True)
    def _(axes, state):
        axis = axes_of_b.pop(0)
        return state if axis is None else decides("a", axis)(axes, state)

    first = pipe.run({})
    assert said(pipe.spec) == [("spec.a", 1, "b")]
    pipe.run({**first.value, "a": np.ones(3)}, start_at="b")
    assert said(pipe.spec) == [("spec.a", 0, "a")]


def test_replace():
    """The new stage has the name and the order of the old one."""
    pipe, ran = sa.Pipeline(default=0), []
    for name in "ab":
        pipe.add(name, lambda axes, state, name=name: ran.append(name) or state)
    pipe.replace("a", lambda axes, state: ran.append("new") or state)
    pipe.run(np.ones(2))
    assert ran == ["new", "b"]


@pytest.mark.parametrize("skip", ["a", ["a"], ("a", "c")], ids=["str", "list", "two"])
def test_skip(skip):
    """A stage that is left out does not run, and what it decided before is gone."""
    pipe = sa.Pipeline(default=None)
    for name in "abc":
        pipe.add(name, decides(name, 0), after="a" if name != "a" else ())
    pipe.run({})
    left = [name for name in "abc" if name not in skip]
    assert list(pipe.run({}, skip=skip).value) == left
    assert [place for place, *_ in said(pipe.spec)] == [f"spec.{n}" for n in left]


@pytest.mark.parametrize(
    ("call", "place"),
    [
        pytest.param(lambda p: p.run({}, skip="wrold"), "skip='wrold'", id="skip"),
        pytest.param(lambda p: p.record(skip="wrold"), "skip='wrold'", id="record"),
        pytest.param(
            lambda p: p.run({}, start_at="wrold"), "start_at='wrold'", id="start_at"
        ),
        pytest.param(
            lambda p: p.replace("wrold", fails),
            "pipe.replace('wrold', ...)",
            id="replace",
        ),
    ],
)
def test_unknown_stage(call, place):
    """A name that no stage has changes nothing, and the nearest one is named."""
    pipe = sa.Pipeline(default=None)
    pipe.add("world", decides("mass", 0))
    pipe.run({})
    before = said(pipe.spec)
    with pytest.raises(sa.PipelineError, match="no stage 'wrold'") as caught:
        call(pipe)
    assert "did you mean 'world'?" in str(caught.value)
    assert caught.value.problems[0].path == place
    assert said(pipe.spec) == before


# Recording ----------------------------------------------------------------------


def test_record():
    """Only recording hooks run; functions, which need a state, have no part in it."""
    pipe = sa.Pipeline(default=None)
    pipe.add("a", Decides("a", 0))
    pipe.add("b", lambda axes, state: pytest.fail("has run"))
    pipe.add("c", Decides("c", 1), after="d")
    pipe.add("d", Decides("d", None))
    assert pipe.record() is pipe.spec
    assert said(pipe.spec) == [
        ("spec.a", 0, "a"),
        ("spec.d", None, "d"),
        ("spec.c", 1, "c"),
    ]


def test_record_starts_anew():
    """What stages decided in an earlier run is taken back, functions among them."""
    pipe = sa.Pipeline(default=None)
    pipe.add("a", Decides("a", 0))
    pipe.add("b", decides("b", 0))
    pipe.run({})
    pipe.record()
    assert said(pipe.spec) == [("spec.a", 0, "a")]
    assert pipe.run({}).bound.leaf_axes == (0, 0)


def test_mistake_appears_before_there_is_data():
    """Hooks that disagree are found out without any state."""
    pipe = sa.Pipeline(default=None)
    pipe.add("world", Decides("mass", 0))
    pipe.add("sysid", Decides("mass", None))
    with pytest.raises(sa.ConflictError, match="by two stages") as caught:
        pipe.record()
    assert [p.stage for p in caught.value.problems] == ["world", "sysid"]
    assert notes(caught.value) == ["in stage 'sysid' of the pipeline"]
    assert said(pipe.spec) == [("spec.mass", 0, "world")]


# Failing ------------------------------------------------------------------------


@given(st.integers(0, 4), st.booleans(), st.booleans())
def test_failing_stage(at, has_run, is_resumed):
    """A failing stage leaves exactly the record of those before it."""
    good = [("a", 0), ("b", None), ("c", 1), ("d", 0)]
    pipe = sa.Pipeline(default=None)
    for i, (name, axis) in enumerate(good):
        form = Decides if i % 2 else decides
        pipe.add(name, form(name, axis), after="fails" if i >= at else ())
    pipe.add("fails", lambda axes, state: state, after=[name for name, _ in good[:at]])
    if has_run:
        pipe.run({})
    pipe.replace("fails", fails)
    before = [(f"spec.{name}", axis, name) for name, axis in good[:at]]
    with pytest.raises(WrongError, match="no"):
        pipe.run({})
    assert said(pipe.spec) == before
    if is_resumed:
        with pytest.raises(WrongError, match="no"):
            pipe.run(pipe.state, start_at="fails")
        assert said(pipe.spec) == before


def test_go_on_after_a_failure():
    """The state before the stage that failed is at hand to go on from."""
    pipe = sa.Pipeline(default=None)
    pipe.add("a", decides("a", 0))
    pipe.add("b", fails)
    pipe.add("c", decides("c", 0))
    with pytest.raises(WrongError, match="no"):
        pipe.run({})
    assert list(pipe.state) == ["a"]
    pipe.replace("b", decides("b", None))
    staged = pipe.run(pipe.state, start_at="b")
    assert staged.bound.leaf_axes == (0, None, 0)
    assert pipe.state is None


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyboardInterrupt("no"),
        StopIteration("no"),
        GeneratorExit("no"),
        FrozenError("no"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_exception_passes_unchanged(error):
    """It is the very exception, with a note that names the stage, and rolls back."""
    pipe = sa.Pipeline(default=None)

    @pipe.stage
    def world(axes, state):
        axes.mass = 0
        raise error

    with pytest.raises(type(error), match="no") as caught:
        pipe.run({})
    assert caught.value is error
    assert notes(error)[-1] == "in stage 'world' of the pipeline"
    assert error.__cause__ is None
    assert said(pipe.spec) == []


def test_notes_are_kept():
    """A note that was there stays."""
    error = ValueError("no")
    vars(error)["__notes__"] = ["mine"]

    def world(axes, state):
        raise error

    pipe = sa.Pipeline(default=None)
    pipe.add("world", world)
    with pytest.raises(ValueError, match="no"):
        pipe.run({})
    assert notes(error) == ["mine", "in stage 'world' of the pipeline"]


def test_last_state_does_not_fit():
    """The stages' decisions stay, and the state is at hand."""
    pipe = sa.Pipeline(default=None)
    pipe.add("a", decides("a", 0))
    pipe.spec.nothing = 0
    with pytest.raises(sa.BindError, match=r"spec\.nothing") as caught:
        pipe.run({})
    assert notes(caught.value) == []
    assert list(pipe.state) == ["a"]
    del pipe.spec.nothing
    assert pipe.spec.bind(pipe.state).leaf_axes == (0,)


# Threads ------------------------------------------------------------------------


def in_threads(*calls):
    """Calls all of them at the same time."""
    start, errors = threading.Barrier(len(calls)), []

    def run(call):
        start.wait()
        try:
            call()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


class Many:
    """A stage that decides for many places, slowly enough to be in another's way."""

    def __init__(self, name, *, fails=False):
        self.name, self.fails = name, fails

    def record(self, axes):
        for i in range(100):
            sa.record(axes, f"{self.name}[{i}]", 0)
        if self.fails:
            raise WrongError(self.name)


def test_two_pipelines_share_a_builder():
    """Pipelines with stages of one name lose no decision of each other's."""
    spec = sa.AxesBuilder(default=None)

    def pipeline(name):
        pipe = sa.Pipeline(spec=spec)
        pipe.add("nodes", Many(f"{name}.nodes"))
        pipe.add("delays", Many(f"{name}.delays"))
        return pipe

    def wrong():
        pipe = sa.Pipeline(spec=spec)
        pipe.add("nodes", Many("wrong", fails=True))
        with pytest.raises(WrongError, match="wrong"):
            pipe.record()

    left, right = pipeline("left"), pipeline("right")
    for _ in range(2):
        in_threads(left.record, right.record, wrong)
        assert sorted(said(spec)) == sorted(
            (f"spec.{name}.{stage}[{i}]", 0, stage)
            for name, stage, i in itertools.product(
                ("left", "right"), ("nodes", "delays"), range(100)
            )
        )


def test_one_pipeline_in_two_threads():
    """One run waits for the other, so that each binds what its own stages decided."""
    pipe, bound = sa.Pipeline(default=None), []
    pipe.add("a", lambda axes, name: sa.record(axes, name, 0) or name)
    pipe.add("b", lambda axes, name: {name: np.ones(3), "z": np.ones(2)})

    def run(name):
        for _ in range(20):
            bound.append((name, pipe.run(name).bound.leaf_axes))

    in_threads(lambda: run("x"), lambda: run("y"))
    assert bound.count(("x", (0, None))) == bound.count(("y", (0, None))) == 20


# Runs inside of stages, and several pipelines ---------------------------------------

STATE = {"mass": np.ones(3), "gravity": np.ones(3)}


def shares(axes, state):
    """A stage that shares the mass."""
    axes.mass = None
    return state


def passes(axes, state):
    """A stage that decides nothing."""
    return state


def test_a_run_inside_a_stage_that_fails():
    """What came back with the stage is still taken back by the next run."""
    spec = sa.AxesBuilder(default=0)
    pipe = sa.Pipeline(spec=spec)
    pipe.add("a", shares)
    pipe.run(STATE)

    def fails():
        with spec.stage("outer"):
            pipe.run(STATE)
            raise WrongError(spec)

    with pytest.raises(WrongError, match="AxesBuilder"):
        fails()
    assert said(spec) == [("spec.mass", None, "a")]
    pipe.replace("a", passes)
    assert pipe.run(STATE).bound.leaf_axes == (0, 0)
    assert said(spec) == []


def test_what_was_taken_back_does_not_come_back():
    """A stage that overrode another one and goes brings back only what still stands."""
    spec = sa.AxesBuilder(default=0)
    one, other = sa.Pipeline(spec=spec), sa.Pipeline(spec=spec)
    one.add("a", decides("mass", 0))
    other.add("b", decides("mass", None), override=True)
    one.run(STATE)
    other.run(STATE)
    one.replace("a", passes)
    one.run(STATE)
    other.replace("b", passes)
    other.run(STATE)
    assert said(spec) == []


# What is no stage -------------------------------------------------------------------


class LateRecord:
    def record(self, axes):
        axes.mass = None
        yield


class LateBuild:
    async def build(self, state):
        return state


class LateCall:
    async def __call__(self, axes, state):
        return state


@pytest.mark.parametrize(
    "stage",
    [LateRecord(), LateBuild(), LateCall(), sa.Pipeline()],
    ids=["generator", "async hook", "async object", "pipeline"],
)
def test_stages_that_do_their_work_later(stage):
    """They are refused when they are added, as nothing would be recorded."""
    with pytest.raises(sa.PipelineError, match=r"^stage 'late' cannot be ") as caught:
        sa.Pipeline().add("late", stage)
    assert caught.value.problems[0].stage == "late"


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda pipe: sa.Pipeline(spec=3), "spec is the builder to decide in, not "),
        (lambda pipe: pipe.run(STATE, skip=3), "stages are meant by name, "),
        (lambda pipe: pipe.run(STATE, skip=None), "stages are meant by name, "),
        (lambda pipe: pipe.run(STATE, start_at=["a"]), "stages are meant by name, "),
        (lambda pipe: pipe.replace(["a"], passes), "stages are meant by name, "),
        (lambda pipe: pipe.add("b", passes, after=3), "stages are meant by name, "),
        (lambda pipe: pipe.subscribe(3), "a hook is called with each event; "),
    ],
    ids=["spec", "skip", "skip None", "start_at", "replace", "after", "hook"],
)
def test_arguments_that_mean_nothing(act, text):
    """Each is refused in the library's own words."""
    pipe = sa.Pipeline()
    pipe.add("a", passes)
    with pytest.raises(sa.PipelineError, match=f"^{text}") as caught:
        act(pipe)
    assert caught.value.problems[0].kind == "argument"
