import logging

import jax.numpy as jnp
import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError
from flax import struct

import staged_axes as sa


@struct.dataclass
class Model:
    """Masses, and a static number."""

    mass: object
    order: int = struct.field(pytree_node=False, default=1)


class Masses:
    """A stage with both hooks."""

    def record(self, axes):
        axes.mass = 0

    def build(self, state):
        return Model(jnp.arange(3.0))


def shared(axes, state):
    """A stage that decides twice."""
    axes.gain = sa.optional(None)
    sa.rule(axes, "**/bias", sa.optional(None))
    return state


def idle(axes, state):
    """A stage that decides nothing."""
    return state


@pytest.fixture
def pipe():
    """A pipeline of three stages."""
    pipe = sa.Pipeline(default=0)
    pipe.add("masses", Masses())
    pipe.add("shared", shared)
    pipe.add("idle", idle)
    return pipe


@pytest.fixture
def events(pipe):
    """All that the pipeline has told."""
    seen = []
    pipe.subscribe(seen.append)
    return seen


def told(events):
    """Kind, stage, place in the run and number of decisions of each event."""
    return [(e.kind, e.stage, e.index, e.count, len(e.decisions)) for e in events]


# Runs ---------------------------------------------------------------------------


def test_run(pipe, events):
    """Each stage starts and finishes, in order; then the value is bound."""
    staged = pipe.run(None)
    assert told(events) == [
        ("started", "masses", 1, 3, 0),
        ("finished", "masses", 1, 3, 1),
        ("started", "shared", 2, 3, 0),
        ("finished", "shared", 2, 3, 2),
        ("started", "idle", 3, 3, 0),
        ("finished", "idle", 3, 3, 0),
        ("bound", None, 0, 0, 0),
    ]
    assert events[-1].axes is staged.bound
    assert len({e.run for e in events[:-1]}) == 1
    made = events[1].decisions[0]
    assert (made.place, made.payload, made.stage.name) == ("spec.mass", 0, "masses")
    assert all(e.seconds is None for e in events if e.kind == "started")
    assert all(e.seconds >= 0 for e in events if e.kind != "started")


def test_record(pipe, events):
    """Only the hooks that run are told of, and nothing is bound."""
    pipe.record()
    assert told(events) == [
        ("started", "masses", 1, 1, 0),
        ("finished", "masses", 1, 1, 1),
    ]


def test_failure(pipe, events):
    """A stage that fails is told of with its error, after its decisions are gone."""
    error = ValueError("no")

    def broken(axes, state):
        axes.gain = 0
        raise error

    pipe.replace("shared", broken)
    standing = []
    pipe.subscribe(lambda _: standing.append(len(pipe.spec.__record__.own().decisions)))
    with pytest.raises(ValueError, match="no"):
        pipe.run(None)
    assert told(events) == [
        ("started", "masses", 1, 3, 0),
        ("finished", "masses", 1, 3, 1),
        ("started", "shared", 2, 3, 0),
        ("failed", "shared", 2, 3, 0),
    ]
    assert events[-1].error is error
    assert events[-1].seconds >= 0
    assert standing == [0, 1, 1, 1]


def test_resumed(pipe, events):
    """A run that goes on has a number of its own, and counts its own stages."""
    pipe.replace("shared", lambda axes, state: None)
    with pytest.raises(sa.PipelineError, match="returned None"):
        pipe.run(None)
    failed = events[-1].run
    events.clear()
    pipe.replace("shared", shared)
    pipe.run(pipe.state, start_at="shared")
    assert told(events) == [
        ("started", "shared", 1, 2, 0),
        ("finished", "shared", 1, 2, 2),
        ("started", "idle", 2, 2, 0),
        ("finished", "idle", 2, 2, 0),
        ("bound", None, 0, 0, 0),
    ]
    assert {e.run for e in events[:-1]} == {events[0].run}
    assert events[0].run > failed


def test_value_that_does_not_fit(pipe, events):
    """A bind that fails is told of without a stage, as part of the run."""
    pipe.spec.nothing = 0
    with pytest.raises(sa.BindError, match=r"spec\.nothing") as caught:
        pipe.run(None)
    kind, stage, *_ = told(events)[-1]
    assert (kind, stage) == ("failed", None)
    assert events[-1].error is caught.value
    assert events[-1].run == events[0].run


def test_inner_stages_count(pipe, events):
    """What a stage decides inside other stages is among what it decided."""

    def nested(axes, state):
        axes.gain = sa.optional(0)
        with axes.stage("inner"):
            axes.bias = sa.optional(0)
        axes.gain = sa.optional(None)
        return state

    pipe.replace("shared", nested)
    pipe.run(None)
    made = events[3].decisions
    assert [(d.place, d.stage.name) for d in made] == [
        ("spec.bias", "inner"),
        ("spec.gain", "shared"),
    ]


def test_bound_by_hand(pipe, events):
    """Whatever is bound with the builder is told of."""
    bound = pipe.spec.bind(Model(np.ones(3)))
    assert [(e.kind, e.run) for e in events] == [("bound", None)]
    assert events[0].axes is bound


# Programs -----------------------------------------------------------------------


def programs(events):
    """Kind, function, number of programs and reason of what was compiled."""
    return [
        (e.kind, e.function, e.programs, e.why)
        for e in events
        if e.kind in ("compiled", "recompiled")
    ]


def test_compiled_and_recompiled(pipe, events):
    """Each program is told of once, and why one more was needed."""

    def power(model):
        return model.mass**model.order

    fast = pipe.batch(power)
    value = pipe.run(None).value
    for order in (1, 1, 2, 1, 2):
        fast(value.replace(order=order))
    fast(value.replace(mass=jnp.arange(4.0)))
    assert programs(events) == [
        ("compiled", "power", 1, ""),
        ("recompiled", "power", 2, ".order: 1 -> 2"),
        ("recompiled", "power", 3, ".mass: f32[3] axis 0 -> f32[4] axis 0"),
    ]
    assert all(e.seconds > 0 for e in events if e.function)


def test_shared_program(pipe, events):
    """Static data that the function does not read compiles nothing, so is not told."""

    def weigh(model):
        return 2 * model.mass

    fast = pipe.batch(weigh)
    value = pipe.run(None).value
    for order in (1, 2, 3):
        fast(value.replace(order=order))
    assert programs(events) == [("compiled", "weigh", 1, "")]


def test_compiled_in_several_places(pipe, events):
    """A builder that says several things of one function hears of it once."""
    fast = sa.batch(lambda a, b: a, in_axes=(pipe.spec, pipe.spec), out_axes=pipe.spec)
    value = pipe.run(None).value
    fast(value, value)
    assert programs(events) == [("compiled", "<lambda>", 1, "")]


def test_failed_call_compiles_nothing(pipe, events):
    """A function that raises when it is traced is not told of."""

    def broken(model):
        message = "no"
        raise ValueError(message)

    value = pipe.run(None).value
    with pytest.raises(ValueError, match="no"):
        pipe.batch(broken)(value)
    assert programs(events) == []


# Hooks --------------------------------------------------------------------------


def test_unsubscribe(pipe, events):
    """A hook that is taken out hears nothing more, and others do."""
    seen = []
    stop = pipe.subscribe(seen.append)
    pipe.record()
    stop()
    stop()
    pipe.run(None)
    assert len(seen) == 2
    assert len(events) == 9


def test_hook_that_raises(pipe, events):
    """It harms neither the run nor other hooks, and one warning names it."""

    class Broken:
        def __call__(self, event):
            message = event.kind
            raise ValueError(message)

    pipe.subscribe(Broken())
    pipe.subscribe(events.append)
    with pytest.warns(RuntimeWarning, match="Broken raised at") as warned:
        assert pipe.run(None).bound.batch_size == 3
    assert [str(w.message).count("ValueError: started") for w in warned] == [1]
    assert len(events) == 14


def test_hook_that_raises_when_a_stage_fails(pipe):
    """The stage's own error passes."""

    def broken(axes, state):
        message = "mine"
        raise KeyError(message)

    def hook(event):
        if event.kind == "failed":
            message = "the hook's"
            raise ValueError(message)

    pipe.replace("idle", broken)
    pipe.subscribe(hook)
    with (
        pytest.warns(RuntimeWarning, match="the hook's"),
        pytest.raises(KeyError, match="mine"),
    ):
        pipe.run(None)


def test_events_are_frozen():
    """An event cannot be written to."""
    event = sa.StageEvent(kind="started", stage="nodes")
    with pytest.raises(FrozenInstanceError):  # noqa: PT011 (it has no text)
        event.stage = "other"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            sa.StageEvent(kind="started", stage="a", index=1, count=3),
            "[1/3] a started",
        ),
        (
            sa.StageEvent(kind="finished", stage="a", index=1, count=3, seconds=0.5),
            "[1/3] a: 0 decisions, 0.5 s",
        ),
        (
            sa.StageEvent(
                kind="failed",
                stage="a",
                index=1,
                count=3,
                seconds=2.0,
                error=ValueError("two\nlines"),
            ),
            "[1/3] a failed, 2 s: ValueError: two lines",
        ),
        (
            sa.StageEvent(kind="failed", error=ValueError()),
            "bind failed: ValueError",
        ),
        (
            sa.StageEvent(
                kind="bound",
                axes=sa.AxesBuilder(default=0).bind(np.ones(3)),
                seconds=0.001,
            ),
            "bound <BoundAxes: 1 of 1 leaves mapped, batch size 3>, 0.001 s",
        ),
        (
            sa.StageEvent(
                kind="recompiled",
                function="f",
                programs=2,
                seconds=1.25,
                why=".n: 1 -> 2",
            ),
            "recompiled f, program 2, 1.25 s: .n: 1 -> 2",
        ),
    ],
    ids=lambda x: x.kind if isinstance(x, sa.StageEvent) else "",
)
def test_text(event, text):
    """An event says in a line what happened."""
    assert str(event) == text


def test_log_events(pipe, caplog):
    """Events go to a logger, with a level for each kind and the event itself."""
    caplog.set_level(logging.DEBUG, "training")
    pipe.subscribe(sa.log_events(logging.getLogger("training")))
    pipe.replace("shared", lambda axes, state: None)
    with pytest.raises(sa.PipelineError, match="returned None"):
        pipe.run(None)
    assert [(r.levelname, r.stage_event.kind) for r in caplog.records] == [
        ("DEBUG", "started"),
        ("INFO", "finished"),
        ("DEBUG", "started"),
        ("ERROR", "failed"),
    ]
    assert caplog.messages[0] == "[1/3] masses started"
    assert {r.name for r in caplog.records} == {"training"}
