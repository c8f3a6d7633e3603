import asyncio
import threading

import pytest

import staged_axes as sa


@pytest.fixture
def spec():
    """A builder in which nothing is decided."""
    return sa.AxesBuilder(default=None)


def by_stage(spec):
    """Place and stage of each decision, in the order of writing."""
    return [(d.place, d.stage.name) for d in spec.__record__.own().decisions]


def test_decorator(spec):
    """A decorated function decides under the stage's name, and returns its value."""

    @spec.stage("physics")
    def physics(axis, *, twice):
        spec.mass = axis
        return twice * 2

    assert physics(0, twice=4) == 8
    assert by_stage(spec) == [("spec.mass", "physics")]
    assert physics.__name__ == "physics"


def test_decorated_function_runs_again(spec):
    """Each call replaces what the one before decided for a place."""

    @spec.stage("physics")
    def physics(axis):
        spec.mass = axis

    physics(0)
    physics(1)
    assert [d.payload for d in spec.__record__.own().decisions] == [1]


def test_decorated_function_calls_itself(spec):
    """Calls inside calls are in the stage too, and one that fails goes alone."""

    @spec.stage("layers")
    def layers(depth):
        spec.layers[depth] = 0
        if depth == 3:
            message = "too deep"
            raise ValueError(message)
        try:
            layers(depth + 1)
        except ValueError:
            spec.layers[depth].w = 0
            if depth == 2:
                raise

    layers(0)
    assert [place for place, _ in by_stage(spec)] == [
        "spec.layers[0]",
        "spec.layers[1]",
        "spec.layers[1].w",
    ]


def test_decorated_function_raises(spec):
    """What it decided is taken back."""

    @spec.stage("physics")
    def physics():
        spec.mass = 0
        message = "no"
        raise ValueError(message)

    with pytest.raises(ValueError, match="no"):
        physics()
    assert by_stage(spec) == []


def test_async_functions_at_one_time(spec):
    """Tasks that take turns each decide under their own stage."""

    def stage(name):
        @spec.stage(name)
        async def decide():
            spec[name].a = 0
            await asyncio.sleep(0)
            spec[name].b = 0

        return decide()

    async def both():
        await asyncio.gather(stage("left"), stage("right"))

    asyncio.run(both())
    assert sorted(by_stage(spec)) == [
        ("spec['left'].a", "left"),
        ("spec['left'].b", "left"),
        ("spec['right'].a", "right"),
        ("spec['right'].b", "right"),
    ]


def test_async_function_raises(spec):
    """What it decided before and after waiting is taken back."""

    @spec.stage("physics")
    async def physics():
        spec.mass = 0
        await asyncio.sleep(0)
        spec.length = 0
        message = "no"
        raise ValueError(message)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(physics())
    assert by_stage(spec) == []


def test_block_opens_again(spec):
    """One block can be kept and opened again, also inside itself."""
    block = spec.stage("physics")
    with block:
        spec.mass = 0
        with block:
            spec.length = 0
        spec.drag = 0
    with block:
        spec.gravity = 0
    assert {stage for _, stage in by_stage(spec)} == {"physics"}


def generator():
    """A generator function."""
    yield


async def async_generator():
    """An asynchronous one."""
    yield


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        pytest.param(generator, "a generator function", id="generator"),
        pytest.param(async_generator, "a generator function", id="async generator"),
        pytest.param(3, "int", id="number"),
    ],
)
def test_not_a_function_body(spec, fn, what):
    """What has no body that runs in one piece is refused where it is decorated."""
    with pytest.raises(sa.RecordError, match=f"not of {what}") as caught:
        spec.stage("physics")(fn)
    assert caught.value.problems[0].there == what


def test_two_stages_in_two_threads(spec):
    """Stages in threads lose nothing, and one that fails goes alone."""
    start = threading.Barrier(3)

    def record(name, *, fails=False):
        start.wait()
        try:
            with spec.stage(name):
                for i in range(200):
                    spec[name][i] = 0
                if fails:
                    raise RuntimeError  # noqa: TRY301
        except RuntimeError:
            pass

    threads = [
        threading.Thread(target=record, args=("left",)),
        threading.Thread(target=record, args=("right",)),
        threading.Thread(target=record, args=("wrong",), kwargs={"fails": True}),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(by_stage(spec)) == sorted(
        (f"spec[{name!r}][{i}]", name) for name in ("left", "right") for i in range(200)
    )


def test_a_stage_that_ends_in_another_task(spec):
    """The body of an async generator may go on elsewhere; a failure is taken back."""

    async def fixture():
        with spec.stage("A"):
            spec.mass = None
            yield

    async def main(fail):
        body = fixture()
        await asyncio.create_task(anext(body))
        if fail:
            with pytest.raises(ValueError, match="real"):
                await body.athrow(ValueError("real"))
        else:
            await body.aclose()

    asyncio.run(main(fail=True))
    assert by_stage(spec) == []
    asyncio.run(main(fail=False))
    spec.later = 0
    assert by_stage(spec)[-1] == ("spec.later", None)


def test_a_stage_that_ends_in_another_thread(spec):
    """What it decided stays, and later writes are no part of it."""
    block = spec.stage("A")
    block.__enter__()
    spec.mass = 0
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    spec.later = 0
    assert by_stage(spec) == [("spec.mass", "A"), ("spec.later", None)]


def test_a_stage_that_is_not_open(spec):
    """To close it is an error of its own."""
    with pytest.raises(sa.RecordError, match="not open") as caught:
        spec.stage("A").__exit__(None, None, None)
    assert str(caught.value) == (
        "stage 'A' is closed, but it is not open.\n\n"
        "  stage 'A'  not open\n\n"
        "  Fix: with spec.stage('A'): ..."
    )
    assert caught.value.problems[0].kind == "stage"
