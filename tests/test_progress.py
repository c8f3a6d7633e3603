import contextlib
import io
import re
import subprocess
import sys

import numpy as np
import pytest

import staged_axes as sa


class Stream(io.StringIO):
    """Standard error, as a terminal or as a file."""

    def __init__(self, *, is_terminal):
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """What rich looks at, as in a plain shell."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def idle(axes, state):
    """A stage that does nothing."""
    return state


def broken(axes, state):
    """A stage that fails."""
    message = "[bold]no"
    raise ValueError(message)


def shown(monkeypatch, stages, *, is_terminal):
    """What is shown of a run, without colours and movements of the cursor."""
    stream = Stream(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    pipe = sa.Pipeline(default=0)
    for name, stage in stages.items():
        pipe.add(name, stage)
    pipe.subscribe(sa.progress())
    with contextlib.suppress(ValueError):
        pipe.run(np.ones(3))
    return stream.getvalue()


def without_times(text):
    """The text without what differs from run to run."""
    return re.sub(r", [\d.e-]+ s", "", text)


def test_lines(monkeypatch):
    """Elsewhere than on a terminal, a plain line for each thing that is done."""
    text = shown(monkeypatch, {"[red]": idle, "b": idle}, is_terminal=False)
    assert without_times(text).splitlines() == [
        "[1/2] [red]: 0 decisions",
        "[2/2] b: 0 decisions",
        "bound <BoundAxes: 1 of 1 leaves mapped, batch size 3>",
    ]


def test_lines_of_a_failure(monkeypatch):
    """A failure is a line too."""
    text = shown(monkeypatch, {"a": idle, "b": broken}, is_terminal=False)
    assert without_times(text).splitlines() == [
        "[1/2] a: 0 decisions",
        "[2/2] b failed: ValueError: [bold]no",
    ]


def test_dumb_terminal(monkeypatch):
    """A terminal that cannot move its cursor gets plain lines."""
    monkeypatch.setenv("TERM", "dumb")
    text = shown(monkeypatch, {"a": idle}, is_terminal=True)
    assert text.count("\n") == 2
    assert "\x1b" not in text


def bars(text):
    """What is on the screen in the end, line by line: names and counts of bars."""
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", text)
    return re.findall(r"(\S+) +\S*━\S* *\S*━?\S* +(\d/\d)", plain)


def test_bar(monkeypatch):
    """On a terminal, a bar is full in the end, and the cursor is there again."""
    text = shown(monkeypatch, {"[red]": idle, "b": idle}, is_terminal=True)
    assert bars(text)[-1] == ("b", "2/2")
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert "bound <BoundAxes" in text


def test_bar_of_a_failure(monkeypatch):
    """The bar stays where the run failed, under a line that says why."""
    text = shown(monkeypatch, {"a": idle, "b": broken}, is_terminal=True)
    assert bars(text)[-1] == ("b", "1/2")
    assert "ValueError: [bold]no" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_bars_of_several_runs(monkeypatch):
    """A run inside a run has a bar of its own; a later run starts with an empty one."""
    stream = Stream(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)
    hook = sa.progress()
    inner, outer = sa.Pipeline(default=0), sa.Pipeline(default=0)
    inner.add("inner", idle)
    outer.add("outer", lambda axes, state: inner.run(state).value)
    for pipe in (inner, outer):
        pipe.subscribe(hook)
    outer.run(np.ones(3))
    assert bars(stream.getvalue())[-2:] == [("outer", "1/1"), ("inner", "1/1")]
    stream.seek(0)
    stream.truncate()
    inner.run(np.ones(3))
    assert {name for name, _ in bars(stream.getvalue())} == {"inner"}


def test_rich_is_not_imported_before():
    """Importing the package does not import rich; `progress` does."""
    code = (
        "import sys, staged_axes as sa; assert 'rich' not in sys.modules;"
        "sa.progress(); assert 'rich' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
