"""Which line of the user's code decided."""

import inspect
import os
import threading

import numpy as np
import pytest

import staged_axes as sa
from staged_axes._words.provenance import Source, caller


def line():
    """The line from which it is called."""
    return inspect.currentframe().f_back.f_lineno


def sources(spec):
    """The lines of all decisions and rules."""
    entries = spec.__record__.entries()
    return [x.source for x in (*entries.decisions, *entries.rules)]


def by_attribute(spec):
    """Writes an attribute."""
    spec.a.b = 0
    return line() - 1


def by_item(spec):
    """Writes an item."""
    spec["a"][0] = 0
    return line() - 1


def by_record(spec):
    """Writes by text."""
    sa.record(spec, "a.b", 0)
    return line() - 1


def by_rule(spec):
    """Writes a rule."""
    sa.rule(spec, "**", 0)
    return line() - 1


def by_place(spec):
    """Writes below a place that was read elsewhere."""
    place = sa.at(spec, "bind")
    place.x = 0
    return line() - 1


def by_mount(spec):
    """Mounts a builder."""
    inner = sa.AxesBuilder()
    spec.m = inner
    return line() - 1


def by_loop(spec):
    """Writes from a comprehension."""
    [spec.a.__setitem__(i, 0) for i in range(1)]
    return line() - 1


def by_exec(spec):
    """Writes from code without a file, as notebooks do."""
    exec(compile("\n\nspec.x = 0", "<ipython-input-7>", "exec"), {"spec": spec})
    return Source("<ipython-input-7>", 3)


WAYS = [
    by_attribute,
    by_item,
    by_record,
    by_rule,
    by_place,
    by_mount,
    by_loop,
    by_exec,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stage", [None, "sysid"], ids=["no stage", "stage"])
def test_the_line_that_decides(way, stage):
    """A decision knows the line that wrote it, however it was written."""
    spec = sa.AxesBuilder(default=None)
    if stage is None:
        expected = way(spec)
    else:
        with spec.stage(stage):
            expected = way(spec)
    if isinstance(expected, int):
        expected = Source(__file__, expected)
    assert sources(spec) == [expected]


def test_a_decorated_function_is_the_users_line():
    """Inside a decorated function the line is that of the body."""
    spec = sa.AxesBuilder(default=None)

    @spec.stage("sysid")
    def decide():
        spec.x = 0
        return line() - 1

    expected = decide()
    assert sources(spec) == [Source(__file__, expected)]


def test_a_default_knows_its_line():
    """The default's line is where the builder was made, or merged from."""
    spec = sa.AxesBuilder(default=0)
    expected = Source(__file__, line() - 1)
    other = sa.AxesBuilder(default=sa.UNDECIDED)
    for builder in (spec, sa.merge(other, spec)):
        (default,) = builder.__record__.entries().defaults
        assert default.source == expected


def test_a_tree_knows_its_line():
    """Every decision of an axes tree has the line that gave the tree."""
    spec = sa.AxesBuilder.from_tree({"a": 0, "b": [None, 1]})
    assert sources(spec) == [Source(__file__, line() - 1)] * 3


def test_a_merge_keeps_the_lines():
    """Merging changes no line."""
    one, other = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
    one.x = 0
    other.y = 0
    assert sources(sa.merge(other, one)) == [*sources(one), *sources(other)]


def test_threads_have_their_lines():
    """In a thread the line is that of the thread's function."""
    spec = sa.AxesBuilder(default=None)
    found = []

    def work():
        spec.x = 0
        found.append(line() - 1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert sources(spec) == [Source(__file__, *found)]


def test_the_line_is_in_bound_axes():
    """`print(bound)` names the line of each decision."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("sysid"):
        spec.x = 0
        expected = Source(__file__, line() - 1)
    bound = spec.bind({"x": np.ones(3)})
    assert f"sysid  {expected}" in str(bound)


HERE = os.getcwd()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (os.path.join(HERE, "train.py"), "train.py:3"),
        (os.path.join(HERE, "sub", "train.py"), os.path.join("sub", "train.py:3")),
        (os.path.join(os.path.dirname(HERE), "train.py"), "train.py:3"),
        (os.path.join(os.sep, "elsewhere", "train.py"), "train.py:3"),
        ("train.py", "train.py:3"),
        ("<stdin>", "stdin:3"),
        ("<ipython-input-7>", "ipython-input-7:3"),
    ],
    ids=["here", "below", "above", "elsewhere", "relative", "prompt", "notebook"],
)
def test_short_form(file, expected):
    """A file here is shown by its way from here, another by its name."""
    assert str(Source(file, 3)) == expected


def test_short_form_without_a_working_directory(tmp_path, monkeypatch):
    """A directory that is gone does no harm."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert str(Source("/elsewhere/train.py", 3)) == "train.py:3"


def test_caller_is_outside_of_the_package():
    """The caller is the innermost line that is not the package's own."""
    assert caller() == Source(__file__, line())
