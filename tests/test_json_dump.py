"""The record as text: what the whole text is, and what has no text."""

import json
import re

import pytest

import json_names
import staged_axes as sa


def with_short_sources(text, test):
    """A text in which this file is `t.py` and lines are counted from the test's."""
    first = test.__code__.co_firstlineno

    def shorter(match):
        return f"{match[1]}{int(match[2]) - first}"

    text = re.sub(r"[^\s\"]*test_json_dump\.py", "t.py", text)
    return re.sub(r"(t\.py:|\"line\": )(\d+)", shorter, text)


def test_text():
    """The text has a decision a line, and leaves out what is usual."""
    spec = sa.AxesBuilder(json_names.Model, default=None)
    with spec.stage("sysid"):
        spec.wheel = sa.optional(0)
        sa.rule(spec, "**/kernel", 1)
    with spec.stage("late", override=True):
        spec.mass = sa.per_leaf(json_names.by_size)
        sa.rule(spec.wheel, re.compile("drag$", re.I), sa.STATIC)
    text = with_short_sources(spec.to_json(), test_text)
    assert (
        text
        == """\
{
  "version": 1,
  "class": "json_names:Model",
  "default": null,
  "file": "t.py",
  "line": 2,
  "decisions": [
    {"place": "wheel", "axis": 0, "stage": "sysid", "optional": true, FILE, "line": 4},
    {"place": "mass", "axis": {"per_leaf": "json_names:by_size"}, LATE, "line": 7}
  ],
  "rules": [
    {"glob": "**/kernel", "axis": 1, "stage": "sysid", FILE, "line": 5},
    {
      "regex": "drag$",
      "flags": ["IGNORECASE"],
      "under": "wheel",
      "axis": "static",
      "stage": "late",
      "override": true,
      "file": "t.py",
      "line": 8
    }
  ]
}
""".replace("LATE", '"stage": "late", "override": true, FILE').replace(
            "FILE", '"file": "t.py"'
        )
    )


def test_text_of_nothing():
    """A builder that decided nothing has a short text."""
    text = sa.AxesBuilder(default=sa.UNDECIDED).to_json()
    assert {k: v for k, v in json.loads(text).items() if k not in ("file", "line")} == {
        "version": 1,
        "default": "undecided",
    }


def test_functions_without_a_name():
    """Everything that has no name is named at once, with who decided and what to do."""

    def local(leaf):
        return 0

    spec = sa.AxesBuilder(default=None)
    with spec.stage("sysid"):
        spec.opt = sa.per_leaf(lambda leaf: 0)
        spec.win = sa.from_node(local)
    sa.rule(spec, json_names.Model(None, None).by_instance, 0)
    with pytest.raises(sa.RecordError, match="3 things in the record") as e:
        spec.to_json()
    shown = with_short_sources(str(e.value), test_functions_without_a_name)
    assert (
        shown
        == """\
3 things in the record cannot be written as text.

  spec.opt                          function <lambda>, LOST     sysid  t.py:8
  spec.win                          function local, LOST        sysid  t.py:9
  sa.rule(spec, Model.by_instance)  function by_instance, LOST  t.py:10

  Fix: define it at the top level of a module (the script itself cannot be imported), \
and use it by its name there""".replace("LOST", "not importable by name")
    )
    first = test_functions_without_a_name.__code__.co_firstlineno
    problems = [(p.path, p.stage, p.file, p.line) for p in e.value.problems]
    assert problems == [
        ("spec.opt", "sysid", __file__, first + 8),
        ("spec.win", "sysid", __file__, first + 9),
        ("sa.rule(spec, Model.by_instance)", None, __file__, first + 10),
    ]


def refused_parts():
    """Builders that hold one thing each that cannot be written."""

    class Local:
        pass

    def default():
        return sa.AxesBuilder(default=sa.per_leaf(lambda leaf: 0))

    def cls():
        return sa.AxesBuilder(Local, default=0)

    def filter_():
        nnx = pytest.importorskip("flax.nnx", exc_type=ImportError)
        spec = sa.AxesBuilder(default=0)
        sa.rule(spec, nnx.Any(nnx.Param, Local), 0)
        return spec

    def mounted():
        spec, inner = sa.AxesBuilder(default=0), sa.AxesBuilder(default=0)
        inner.x = sa.per_leaf(lambda leaf: 0)
        spec.world = inner
        return spec

    def key():
        spec = sa.AxesBuilder(default=0)
        spec[frozenset({1})] = 0
        return spec

    return {
        "default": (default, "default", "function <lambda>, not importable by name"),
        "class": (cls, "sa.AxesBuilder(...)", "class Local, not importable by name"),
        "filter": (
            filter_,
            "sa.rule(spec, Any)",
            "class Local, not importable by name",
        ),
        "mounted": (mounted, "spec.x", "function <lambda>, not importable by name"),
        "key": (key, "spec[frozenset({1})]", "a key that has no text"),
    }


@pytest.mark.parametrize("name", refused_parts())
def test_parts_that_cannot_be_written(name):
    """A part without a text is refused wherever it stands."""
    make, path, there = refused_parts()[name]
    with pytest.raises(sa.RecordError, match="1 thing in the record cannot be") as e:
        make().to_json()
    (problem,) = e.value.problems
    assert (problem.path, problem.there) == (path, there)
    assert problem.file == __file__
