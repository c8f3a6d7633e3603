"""Stages that open, end, fail and overlap; threads; copies; mounts; merges."""

import asyncio
import contextlib
import contextvars
import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
import winners
from winners import Disagree, Write


def said(spec):
    """What a builder says: place, axis and stage of each decision, in order."""
    return [
        (d.place, d.payload, d.stage.name) for d in spec.__record__.entries().decisions
    ]


def leaf_axes(spec, **fields):
    """The axes of a value that has these fields, each of shape (3, 3)."""
    value = {name: np.zeros((3, 3)) if x is None else x for name, x in fields.items()}
    return spec.bind(value, axis_size=3).leaf_axes


class Failed(Exception):  # noqa: N818
    """The user's own error in the body of a stage."""


# A stage that raises ------------------------------------------------------------


def fill(spec):
    """Something for a stage to spoil."""
    spec.x = 0
    with spec.stage("first"):
        spec.y.z = 1
        spec.y.w = None
        sa.rule(spec, "**/k", 0)


def add(spec):
    """Writes where nobody did."""
    spec.new = 0
    sa.rule(spec, "**/new", 0)


def replace(spec):
    """Writes over what the same stage wrote."""
    with spec.stage("first"):
        spec.y = 2
        sa.rule(spec, "**/k", None)


def take_back(spec):
    """Deletes what the same stage wrote."""
    with spec.stage("first"):
        del spec.y


def override(spec):
    """Writes over what others wrote."""
    with spec.stage("last", override=True):
        spec.y = None
        del spec.x


def nest(spec):
    """Opens stages inside stages."""
    with spec.stage("inner"):
        spec.a = 0
        with spec.stage("innermost", override=True):
            spec.y.z = None


def fail_inside(spec):
    """Survives one failure, and fails again."""
    with contextlib.suppress(Failed), spec.stage("inner"):
        spec.a = 0
        raise Failed
    spec.b = 0


def mount(spec):
    """Mounts another builder."""
    spec.m = sa.AxesBuilder(default=None)


@pytest.mark.parametrize(
    "spoil", [add, replace, take_back, override, nest, fail_inside, mount]
)
def test_a_stage_that_raises_leaves_no_trace(spoil):
    """The record is as it was, and the exception passes unchanged."""
    spec = sa.AxesBuilder(default=None)
    fill(spec)
    before, text = spec.__record__.own(), str(spec)
    error = Failed("mine")

    @spec.stage("outer")
    def body():
        spoil(spec)
        assert spec.__record__.own() != before
        raise error

    with pytest.raises(Failed, match="mine") as e:
        body()
    assert e.value is error
    assert spec.__record__.own() == before
    assert str(spec) == text


@pytest.mark.parametrize("spoil", [add, replace, take_back, override, nest, mount])
def test_a_stage_that_ends_well_stays(spoil):
    """What a stage wrote stays when it ends."""
    spec, other = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    for builder in (spec, other):
        fill(builder)
    with spec.stage("outer"):
        spoil(spec)
    with other.stage("outer"):
        spoil(other)
        expected = str(other)
    assert str(spec) == expected


def test_writes_go_on_after_a_failure():
    """A conflict with a stage that failed is none."""
    spec = sa.AxesBuilder(default=None)
    with contextlib.suppress(Failed), spec.stage("first"):
        spec.x = 0
        raise Failed
    with spec.stage("second"):
        spec.x = 1
    assert said(spec) == [("spec.x", 1, "second")]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_every_exception_is_a_failure(kind):
    """An interrupt takes a stage back as well."""
    spec = sa.AxesBuilder(default=None)
    error = kind("stop")

    @spec.stage("first")
    def body():
        spec.x = 0
        raise error

    with pytest.raises(kind, match="stop"):
        body()
    assert said(spec) == []


def test_a_stage_is_a_decorator():
    """A decorated function writes in the stage at each call, and may fail."""
    spec = sa.AxesBuilder(default=None)

    @spec.stage("sysid")
    def decide(name, fails=False):
        """Its own docstring."""
        spec[name] = 0
        if fails:
            raise Failed
        return name

    assert decide("a") == "a"
    assert decide("b") == "b"
    with pytest.raises(Failed, match=r"^$"):
        decide("c", fails=True)
    assert said(spec) == [("spec['a']", 0, "sysid"), ("spec['b']", 0, "sysid")]
    assert decide.__doc__ == "Its own docstring."


def test_a_stage_can_be_opened_again():
    """One object opens a stage as often as one likes, inside itself too."""
    spec = sa.AxesBuilder(default=None)
    block = spec.stage("sysid")
    with block:
        spec.a = 0
        with contextlib.suppress(Failed), block:
            spec.b = 0
            raise Failed
        spec.c = 0
    with block:
        spec.a = 1
    assert said(spec) == [("spec.c", 0, "sysid"), ("spec.a", 1, "sysid")]


def test_stages_of_two_builders():
    """A stage labels what is written to its own builder alone, and takes that back."""
    one, other = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    with contextlib.suppress(Failed), one.stage("mine"):
        other.x = 0
        with other.stage("yours"):
            one.x = 0
            other.y = 0
        one.y = 0
        raise Failed
    assert said(one) == []
    assert said(other) == [("spec.x", 0, None), ("spec.y", 0, "yours")]


# Stages that overlap ------------------------------------------------------------

LABELS = ("one", "two", "three", "three")
OVERRIDING = ("three",)


@st.composite
def overlaps(draw):
    """Steps of four runs, each in its own thread of control; which of them fail."""
    model = draw(winners.models(max_leaves=4))
    steps = []
    for _ in range(draw(st.integers(1, 12))):
        run = draw(st.integers(0, len(LABELS) - 1))
        path = draw(winners.spellings(model))
        axis = draw(winners.AXES)
        steps.append((run, path, axis, draw(st.integers(0, 4)) == 0))
    return steps, draw(st.sets(st.integers(0, len(LABELS) - 1)))


def place_of(spec, path):
    """The place that a path names."""
    for step in path:
        spec = spec[step]
    return spec


def text_of(path):
    """A path of items as code."""
    steps = [
        ("" if step.start is None else str(step.start)) + ":"
        if isinstance(step, slice)
        else repr(step)
        for step in path
    ]
    return "spec" + "".join(f"[{step}]" for step in steps)


@given(overlaps(), st.permutations(range(len(LABELS))))
def test_overlapping_stages(overlap, order):
    """What stands is what the stages that ended well wrote, as if there were no other.

    The runs take turns in contexts of their own, as threads and tasks do.
    """
    steps, failing = overlap
    spec = sa.AxesBuilder(default=None)
    contexts = [contextvars.copy_context() for _ in LABELS]
    blocks = [spec.stage(name, override=name in OVERRIDING) for name in LABELS]
    for context, block in zip(contexts, blocks, strict=True):
        context.run(block.__enter__)
    log = []
    for run, path, axis, deletes in steps:
        label = LABELS[run]
        if deletes and path:
            with contextlib.suppress(sa.RecordError):
                contexts[run].run(place_of(spec, path[:-1]).__delitem__, path[-1])
            log.append((run, Write(label, path, "deleted", label in OVERRIDING)))
            continue
        try:
            contexts[run].run(sa.record, place_of(spec, path), "", axis)
        except sa.ConflictError:
            continue
        log.append((run, Write(label, path, axis, label in OVERRIDING)))
    for run in order:
        error = Failed() if run in failing else None
        contexts[run].run(blocks[run].__exit__, error and Failed, error, None)
    standing = []
    for run, new in log:
        if run not in failing:
            standing = [old for old in standing if not winners.replaces(new, old)]
            standing += [] if new.axis == "deleted" else [new]
    assert said(spec) == [(text_of(w.path), w.axis, w.stage) for w in standing]


def in_threads(count, work):
    """Runs `work(i)` in threads at once; what they raise is raised."""
    barrier, errors = threading.Barrier(count), []

    def run(i):
        barrier.wait()
        try:
            work(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


def test_threads_lose_nothing():
    """Many threads write, delete and read, and all that they wrote is there."""
    spec = sa.AxesBuilder(default=None)
    inner = sa.AxesBuilder(default=None)

    def work(i):
        for n in range(40):
            with spec.stage(f"stage {i}"):
                spec[f"t{i}"][n] = n
                inner[f"t{i}"][n] = n
                spec[f"t{i}"].gone = 0
                del spec[f"t{i}"].gone
            if n % 8 == 0:
                spec[f"m{i}"] = inner
                assert str(spec)
            sa.rule(spec, f"t{i}/{n}", n)

    in_threads(6, work)
    written = {(p, s) for p, _, s in said(spec) if p.startswith("spec['t")}
    assert written == {
        (f"spec['t{i}'][{n}]", f"stage {i}") for i in range(6) for n in range(40)
    }
    entries = spec.__record__.own()
    assert {r.pattern for r in entries.rules} == {
        f"t{i}/{n}" for i in range(6) for n in range(40)
    }
    assert len(inner.__record__.own().decisions) == 240


def test_failing_threads_take_back_their_own():
    """Threads in stages of one name fail or not, and each only for itself."""
    spec = sa.AxesBuilder(default=None)

    def work(i):
        for n in range(20):
            with contextlib.suppress(Failed), spec.stage("same", override=True):
                spec[f"t{i}"][n] = n
                if (i + n) % 2:
                    raise Failed

    in_threads(6, work)
    assert {p for p, _, _ in said(spec)} == {
        f"spec['t{i}'][{n}]" for i in range(6) for n in range(20) if not (i + n) % 2
    }


def test_binding_while_others_write():
    """A value can be bound while another thread writes."""
    spec = sa.AxesBuilder(default=0)
    value = {f"x{n}": np.zeros(3) for n in range(50)}

    def work(i):
        for n in range(50):
            if i:
                spec[f"x{n}"] = None if n else 0
            else:
                assert spec.bind(value).batch_size == 3

    in_threads(3, work)
    assert spec.bind(value).leaf_axes == (0,) + (None,) * 49


def test_tasks_have_their_own_stages():
    """Tasks that take turns write each in its own stage."""
    spec = sa.AxesBuilder(default=None)

    async def work(name):
        with spec.stage(name):
            await asyncio.sleep(0)
            spec[name] = 0

    async def main():
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(main())
    assert said(spec) == [("spec['a']", 0, "a"), ("spec['b']", 0, "b")]


# Conflicts ----------------------------------------------------------------------


@given(st.data(), winners.models())
def test_conflict_is_raised_at_the_second_write(data, model):
    """The write at which the naive walk finds a conflict raises, and writes nothing."""
    program = data.draw(winners.programs(model))
    spec = sa.AxesBuilder(default=None)
    done = []
    for w in program:
        with (
            spec.stage(w.stage, override=w.override)
            if w.stage
            else contextlib.nullcontext()
        ):
            try:
                done = winners.written([*done, w])
            except Disagree:
                with pytest.raises(sa.ConflictError, match="by two stages") as e:
                    sa.record(place_of(spec, w.path), "", w.axis)
                assert len(e.value.problems) == 2
            else:
                sa.record(place_of(spec, w.path), "", w.axis)
        assert [(x, s) for _, x, s in said(spec)] == [(d.axis, d.stage) for d in done]


def test_conflict_names_both_places():
    """The error has both lines, stages and axes as data."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        spec.x = 0
    with (
        pytest.raises(sa.ConflictError, match=r"spec\.x is decided differently") as e,
        spec.stage("second"),
    ):
        spec.x = None
    old, new = e.value.problems
    assert (old.path, old.axis, old.stage) == ("spec.x = 0", 0, "first")
    assert (new.path, new.axis, new.stage) == ("spec.x = None", None, "second")
    assert old.file == new.file == __file__
    assert new.line == old.line + 5


def test_stages_may_agree():
    """The same decision by two stages is no conflict; each can take back its own."""
    spec = sa.AxesBuilder(default=None)
    for name in ("first", "second"):
        with spec.stage(name):
            spec.x = np.int64(1)
    with spec.stage("first"):
        del spec.x
    assert said(spec) == [("spec.x", 1, "second")]


def test_override_settles_a_conflict_for_good():
    """After an override the replaced stage has no say left."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        spec.x.y = 0
    with spec.stage("second", override=True):
        spec.x = 1
    with spec.stage("third"):
        spec.x = 1
    assert leaf_axes(spec, x={"y": np.zeros((3, 3))}) == (1,)
    assert said(spec) == [("spec.x", 1, "second"), ("spec.x", 1, "third")]


# Copies -------------------------------------------------------------------------

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda spec: pickle.loads(pickle.dumps(spec)),
    "merge": sa.merge,
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@given(data=st.data())
def test_a_copy_says_the_same(make, data):
    """A copy binds as the original does, and neither sees later writes to the other."""
    model = data.draw(winners.models())
    program = data.draw(winners.programs(model, overriding=("x", "y")))
    spec = sa.AxesBuilder(default=1)
    for w in program:
        with spec.stage(w.stage or "unnamed", override=True):
            sa.record(place_of(spec, w.path), "", w.axis)
    with contextlib.suppress(sa.BindError):
        expected = spec.bind(winners.value_of(model), axis_size=3).leaf_axes
        twin = make(spec)
        assert twin.bind(winners.value_of(model), axis_size=3).leaf_axes == expected
        assert (said(twin), str(twin)) == (said(spec), str(spec))
        twin.later = 0
        spec.later = 1
        assert said(twin)[:-1] == said(spec)[:-1]
        assert (said(twin)[-1][1], said(spec)[-1][1]) == (0, 1)


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_copy_keeps_rules(make):
    """Rules, their stages and their order are copied."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        sa.rule(spec, "**/b", 0)
        sa.rule(spec.a, "b", 1)
    twin = make(spec)
    value = {"a": {"b": np.zeros((3, 3))}, "b": np.zeros((3, 3))}
    assert twin.bind(value).leaf_axes == spec.bind(value).leaf_axes == (1, 0)


@pytest.mark.parametrize(
    ("make", "follows"),
    [(copy.copy, True), (copy.deepcopy, False), (COPIES["pickle"], False)],
    ids=["copy", "deepcopy", "pickle"],
)
def test_a_copy_of_a_mount(make, follows):
    """A shallow copy mounts the same builder, a deep one has its own."""
    spec, inner = sa.AxesBuilder(default=None), sa.AxesBuilder(default=sa.UNDECIDED)
    spec.m = inner
    twin = make(spec)
    inner.x = 0
    assert (("spec.m.x", 0, None) in said(twin)) is follows


def test_a_copy_is_another_party():
    """A copy's decisions are not the original's: to disagree with it is a conflict."""
    spec = sa.AxesBuilder(default=None)
    spec.x = 0
    twin = copy.deepcopy(spec)
    twin.x = 1
    with pytest.raises(sa.ConflictError, match="decided differently"):
        sa.merge(spec, twin)


def test_a_copy_inside_a_stage():
    """A copy taken while a stage is open keeps what was written, whatever comes."""
    spec = sa.AxesBuilder(default=None)
    with contextlib.suppress(Failed), spec.stage("first"):
        spec.x = 0
        twin = copy.copy(spec)
        twin.y = 0
        raise Failed
    assert said(spec) == []
    assert said(twin) == [("spec.x", 0, "first"), ("spec.y", 0, None)]


def test_a_record_from_another_process():
    """What comes from another process counts as earlier, and loses nothing here."""
    code = (
        "import pickle, sys, staged_axes as sa\n"
        "spec = sa.AxesBuilder(default=None)\n"
        "for i in range(500): spec[f'x{i}'] = 0\n"
        "sa.rule(spec, '**/a', 0); sa.rule(spec, '**/b', 0)\n"
        "sys.stdout.buffer.write(pickle.dumps(spec))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    spec = pickle.loads(done.stdout)
    spec.x0 = 1
    sa.rule(spec, "**/c", 0)
    assert len(said(spec)) == 500
    assert said(spec)[-1] == ("spec.x0", 1, None)
    assert [r.pattern for r in spec.__record__.own().rules] == ["**/a", "**/b", "**/c"]
    with spec.stage("mine"):
        spec.y = 0
    with pytest.raises(sa.BindError, match=r"^500 decisions point") as e:
        spec.bind({"x499": np.zeros((3, 3)), "a": np.zeros((3, 3))})
    assert len([p for p in e.value.problems if p.kind == "unknown"]) == 500


# The stamp ----------------------------------------------------------------------


def test_the_stamp_changes_with_what_is_said():
    """The stamp tells that something was written, here or in a mounted record."""
    spec, inner = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    stamps = [spec.__record__.stamp()]

    def is_new():
        stamps.append(spec.__record__.stamp())
        return stamps[-1] not in stamps[:-1]

    assert not is_new()
    spec.x = 0
    assert is_new()
    spec.m = inner
    assert is_new()
    inner.x = 0
    assert is_new()
    sa.rule(inner, "**", 0)
    assert is_new()
    del spec.m
    assert is_new()
    inner.y = 0
    assert not is_new()
    with contextlib.suppress(Failed), spec.stage("first"):
        spec.y = 0
        raise Failed
    assert is_new()
    with contextlib.suppress(sa.ConflictError), spec.stage("first"):
        spec.x = 2
    assert copy.copy(spec).__record__.stamp() not in stamps


def test_entries_are_kept_while_nothing_is_written():
    """Asking again gives the very same object until something is written."""
    spec = sa.AxesBuilder(default=None)
    spec.x = 0
    first = spec.__record__.entries()
    assert spec.__record__.entries() is first
    spec.y = 0
    assert spec.__record__.entries() is not first
