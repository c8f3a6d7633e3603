"""The stages of a pipeline: what one may be, in which order they run, and one run."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import frozen

from staged_axes._bind.bind import bind
from staged_axes._bind.bound import BoundAxes
from staged_axes._bind.builder import AxesBuilder
from staged_axes._pipeline.events import StageEvent
from staged_axes._record.decisions import Stage
from staged_axes._record.record import Record
from staged_axes._record.staging import Run, StageBlock
from staged_axes._words.display import short
from staged_axes._words.news import Listeners
from staged_axes._words.paths import nearest
from staged_axes.errors import PipelineError, Problem, error, with_article

_HOOKS = ("record", "build")


@frozen
class Staged:
    """What a run of a pipeline gives.

    Attributes:
      value: The state that the last stage returned.
      bound: The axes of its leaves.
    """

    value: Any
    bound: BoundAxes


@frozen(eq=False)
class Part:
    """One stage of a pipeline.

    Attributes:
      name: What it is called in tables, messages and events.
      record: Decides, and needs no state: `record(axes)`; or None.
      build: From the state to the next one: `build(axes, state)`; or None.
      after: The stages that run before it.
      override: May it decide differently from earlier ones?
    """

    name: str
    record: Callable[[Any], object] | None
    build: Callable[[Any, Any], Any] | None
    after: tuple[str, ...]
    override: bool

    def decide(self, axes: Any) -> None:
        """Decides what needs no state."""
        if self.record is not None:
            self.record(axes)

    def run(self, axes: Any, state: Any) -> Any:
        """Decides and builds.

        Raises:
          PipelineError: No state comes out.
        """
        self.decide(axes)
        if self.build is None:
            return state
        built = self.build(axes, state)
        if built is None and state is not None:
            raise error(
                PipelineError,
                f"stage {self.name!r} was given a state and returned None.",
                Problem(kind="stage", path=self.name, there="None", stage=self.name),
                fixes=["return state"],
            )
        return built


def part_of(name: str, stage: Any, after: str | Iterable[str], override: bool) -> Part:
    """Reads a stage: a function of `(axes, state)`, or an object with hooks.

    Raises:
      PipelineError: It is neither.
    """
    if not isinstance(name, str) or not name:
        raise _no_stage(str(name), short(name), "a stage needs a name, not")
    record, build = None, None
    if not isinstance(stage, type):
        record, build = (_hook(stage, hook, name) for hook in _HOOKS)
    if record or build:
        of_state = build and (lambda axes, state: build(state))
        return Part(name, record, of_state, names_of(after), override)
    if not callable(stage) or not _does(stage, 2):
        raise _no_stage(name, short(stage), f"stage {name!r} cannot be")
    return Part(name, None, stage, names_of(after), override)


def _hook(stage: Any, hook: str, name: str) -> Any:
    """A method of an object, or None.

    Raises:
      PipelineError: It is no such hook.
    """
    found = getattr(stage, hook, None)
    if not callable(found):
        return None
    if not _does(found, 1):
        there = (
            f"{short(stage)}, whose {hook} takes something else or is not run at once"
        )
        raise _no_stage(name, there, f"stage {name!r} cannot be")
    return found


def _does(fn: Any, count: int) -> bool:
    """Does it all that it does when called with so many arguments?

    As far as Python can tell; `async` functions and generators do it later.
    """
    later = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    if any(is_later(f) for is_later in later for f in (fn, type(fn).__call__)):
        return False
    try:
        inspect.signature(fn).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # of a built-in nothing is known
        return True
    return True


def _no_stage(name: str, there: str, headline: str) -> PipelineError:
    """The error for what is no stage."""
    return error(
        PipelineError,
        f"{headline} {there}: a stage is a function (axes, state) -> state, or an "
        "object with the hooks record(axes), build(state) or both.",
        Problem(kind="stage", path=name, there=there, stage=name),
        fixes=['@pipe.stage("name")\ndef name(axes, state): ...; return state'],
    )


def builder_of(cls: Any, default: Any, spec: Any) -> AxesBuilder:
    """The builder in which the stages of a pipeline decide.

    Raises:
      PipelineError: It is none, or a class or default is given beside it.
    """
    if spec is None:
        return AxesBuilder(cls, default=default)
    if not isinstance(spec, AxesBuilder):
        raise error(
            PipelineError,
            f"spec is the builder to decide in, not {with_article(short(spec))}.",
            Problem(kind="argument", path="spec", there=short(spec)),
            fixes=["sa.Pipeline(spec=sa.AxesBuilder(default=0))"],
        )
    if cls is not None or default != 0:
        raise error(
            PipelineError,
            "the builder has a class and a default of its own.",
            Problem(kind="argument", path="sa.Pipeline(...)", there=repr(spec)),
            fixes=["sa.Pipeline(spec=spec)"],
        )
    return spec


def check_hook(hook: Any) -> None:
    """Refuses a hook that cannot be called.

    Raises:
      PipelineError: It cannot.
    """
    if not callable(hook):
        raise error(
            PipelineError,
            f"a hook is called with each event; {short(hook)} cannot be called.",
            Problem(kind="argument", path="hook", there=short(hook)),
            fixes=["pipe.subscribe(lambda event: print(event.kind))"],
        )


def names_of(names: str | Iterable[str]) -> tuple[str, ...]:
    """One name or several, as several.

    Raises:
      PipelineError: They are no names.
    """
    several = (names,) if isinstance(names, str) else names
    if isinstance(several, Iterable):
        listed = tuple(several)
        if all(isinstance(name, str) for name in listed):
            return listed
    raise error(
        PipelineError,
        f"stages are meant by name, one or several, not by {short(names)}.",
        Problem(kind="argument", path="names of stages", there=short(names)),
        fixes=['after="nodes", skip=("nodes", "delays")'],
    )


def from_stage(name: str | None, parts: Mapping[str, Part]) -> list[Part]:
    """The stages in order, from one on; None for all.

    Raises:
      PipelineError: There is no such stage, or there is no order.
    """
    ordered = in_order(parts)
    if name is None:
        return ordered
    (name,) = names_of([name])
    known([name], parts, f"start_at={name!r}")
    return ordered[ordered.index(parts[name]) :]


def in_order(parts: Mapping[str, Part]) -> list[Part]:
    """The stages as they run: as they were added, those that others need before them.

    Raises:
      PipelineError: Stages need each other, or one that there is not.
    """
    done: dict[str, Part] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in done:
            return
        if name in above:
            raise _cycle(above[above.index(name) :])
        needs = parts[name].after
        known(needs, parts, f"after={needs!r} of stage {name!r}")
        for other in needs:
            visit(other, (*above, name))
        done[name] = parts[name]

    for name in parts:
        visit(name, ())
    return list(done.values())


def known(names: Iterable[str], parts: Mapping[str, Part], where: str) -> None:
    """Refuses names that no stage has.

    Raises:
      PipelineError: There is one.
    """
    unknown = [name for name in names if name not in parts]
    if not unknown:
        return
    like = nearest(str(unknown[0]), parts)
    raise error(
        PipelineError,
        f"the pipeline has no stage {unknown[0]!r}.",
        *(
            Problem(
                kind="unknown",
                path=where,
                there=f"the stages are {', '.join(parts) or 'none yet'}",
                stage=name,
            )
            for name in unknown
        ),
        fixes=[f"did you mean {like[0]!r}?" if like else "pipe.add(name, stage)"],
    )


def _cycle(names: tuple[str, ...]) -> PipelineError:
    """The error for stages that wait for each other."""
    pairs = zip(names, (*names[1:], names[0]), strict=True)
    circle = " after ".join(map(repr, (*names, names[0])))
    return error(
        PipelineError,
        f"{len(names)} stages wait for each other: {circle}."
        if len(names) > 1
        else f"stage {names[0]!r} waits for itself.",
        *(
            Problem(kind="cycle", path=one, asked=f"after {other}", stage=one)
            for one, other in pairs
        ),
        fixes=["leave one of them out of after=(...)"],
    )


@frozen
class Pass:
    """One pass over the stages of a pipeline.

    Attributes:
      number: Which one it is, in this process.
      parts: The stages.
      owner: Whose they are.
      record: Where they decide.
      hooks: Who is told.
      made: Takes up what each stage decided, so that it can be taken back.
    """

    number: int
    parts: list[Part]
    owner: int
    record: Record
    hooks: Listeners
    made: dict[str, Run]

    @contextlib.contextmanager
    def stage(self, part: Part) -> Iterator[None]:
        """Labels what a stage decides, tells of it, takes it back where it fails."""
        tell = partial(self._tell, stage=part.name, index=1 + self.parts.index(part))
        tell(kind="started")
        label = Stage(part.name, self.owner, part.override)
        with (
            self._failure_told(tell, part.name) as seconds,
            StageBlock(self.record, label) as made,
        ):
            yield
        self.made[part.name] = made
        decisions = self.record.made(made)
        tell(kind="finished", seconds=seconds(), decisions=decisions)

    def bind(self, state: Any) -> BoundAxes:
        """The axes of the last state."""
        with self._failure_told(self._tell):
            return bind(self.record, state)

    def _tell(self, **what: Any) -> None:
        """Tells the hooks of one event of this run."""
        event = StageEvent(run=self.number, count=len(self.parts), **what)
        self.hooks.tell(event)

    @contextlib.contextmanager
    def _failure_told(
        self, tell: Callable[..., None], stage: str | None = None
    ) -> Iterator[Callable[[], float]]:
        """Tells of what is raised inside; gives the seconds since it was entered."""
        begun = time.perf_counter()
        try:
            yield lambda: time.perf_counter() - begun
        except BaseException as e:
            if stage is not None:
                _note(e, f"in stage {stage!r} of the pipeline")
            tell(kind="failed", seconds=time.perf_counter() - begun, error=e)
            raise


def _note(e: BaseException, note: str) -> None:
    """Leaves a note on an exception, as `add_note` does from Python 3.11 on."""
    # By its dict, because a frozen class of exceptions refuses the plain assignment.
    vars(e)["__notes__"] = [*vars(e).get("__notes__", ()), note]
