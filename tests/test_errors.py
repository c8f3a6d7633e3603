"""Errors as data, and how their text is put together."""

import copy
import pickle

import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
from staged_axes import errors
from staged_axes.errors import (
    SENTENCES,
    BindConflictError,
    FieldError,
    Problem,
    clip,
    count,
    error,
    few,
    headline,
    message,
    unfit,
    with_article,
)

BUILT_INS = [
    (sa.StagedAxesError, Exception),
    (sa.RecordError, TypeError),
    (FieldError, AttributeError),
    (FieldError, sa.RecordError),
    (sa.ConflictError, ValueError),
    (sa.BindError, ValueError),
    (BindConflictError, sa.BindError),
    (BindConflictError, sa.ConflictError),
    (sa.BatchError, ValueError),
    (sa.PipelineError, ValueError),
]
CLASSES = list(dict.fromkeys(cls for cls, _ in BUILT_INS))


@pytest.mark.parametrize(("cls", "base"), BUILT_INS, ids=lambda cls: cls.__name__)
def test_the_tree_of_errors(cls, base):
    """Every error is of the package's tree, and the built-in that one expects."""
    assert issubclass(cls, base)
    assert issubclass(cls, sa.StagedAxesError)
    assert cls.__doc__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    "make",
    [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies(cls, make):
    """An error keeps its text and its data on every way, as to another process."""
    e = error(cls, "wrong.", Problem(kind="axis", path="value.x", shape=(3,), line=7))
    twin = make(e)
    assert type(twin) is cls
    assert str(twin) == str(e)
    assert (
        twin.problems
        == e.problems
        == (Problem(kind="axis", path="value.x", shape=(3,), line=7),)
    )


def test_an_error_without_problems():
    """The data may be empty."""
    assert sa.BindError("text").problems == ()


ROW = Problem(
    kind="axis",
    path="value.x",
    there="f32[3]",
    asked="axis 1",
    decided_by="sysid  train.py:3",
    fix="spec.x = 0",
)


def row(**changes):
    """A problem that differs from `ROW`."""
    fields = {name: getattr(ROW, name) for name in Problem.__slots__ if name[0] != "_"}
    return Problem(**{**fields, **changes})


def test_form():
    """One sentence, a row for each place in columns, and the fixes."""
    text = message("1 thing is wrong.", [ROW, row(path="value.longer", fix="del x")])
    assert text == (
        "1 thing is wrong.\n\n"
        "  value.x       f32[3]  axis 1  sysid  train.py:3\n"
        "  value.longer  f32[3]  axis 1  sysid  train.py:3\n\n"
        "  Fix: spec.x = 0\n"
        "       del x"
    )


def test_rows_with_the_same_cells_are_in_line():
    """Rows of another kind have columns of their own."""
    rows = [
        row(there="a very long list of what is there instead", asked=""),
        ROW,
        row(path="value.longer"),
    ]
    assert message("wrong.", rows).splitlines()[2:5] == [
        "  value.x  a very long list of what is there instead  sysid  train.py:3",
        "  value.x       f32[3]  axis 1  sysid  train.py:3",
        "  value.longer  f32[3]  axis 1  sysid  train.py:3",
    ]


def test_at_most_eight_rows():
    """Of many problems eight are shown, and the rest is counted."""
    rows = [row(path=f"value[{i}]", fix="") for i in range(20)]
    lines = message("wrong.", rows).splitlines()
    assert [line.split()[0] for line in lines[2:10]] == [
        f"value[{i}]" for i in range(8)
    ]
    assert lines[10:] == ["  and 12 more"]


def test_every_kind_has_its_turn():
    """Many problems of one kind hide none of another, nor its fix."""
    rows = [row(path=f"value[{i}]", fix=f"fix {i}") for i in range(20)]
    rows += [row(kind="size", path="value.y", fix="other"), row(kind="shape", path="z")]
    text = message("wrong.", rows)
    shown = [line.split()[0] for line in text.splitlines()[2:10]]
    assert shown == [*(f"value[{i}]" for i in range(6)), "value.y", "z"]
    assert text.endswith("  Fix: fix 0\n       other\n       spec.x = 0")


def test_fixes_are_told_once():
    """The same fix for several places is one line, and at most three are told."""
    rows = [row(fix="same"), row(fix="same"), *(row(fix=f"fix {i}") for i in range(9))]
    text = message("wrong.", rows)
    assert text.endswith("\n\n  Fix: same\n       fix 0\n       fix 1")


def test_given_fixes_go_first():
    """Fixes for the whole take the place of those of the rows."""
    assert message("wrong.", [ROW], fixes=["a", "b"]).endswith("\n  Fix: a\n       b")
    assert message("wrong.", []) == "wrong."


LONG = st.text(max_size=40) | st.integers(1, 4).map(lambda n: "long text " * 10**n)


@given(
    st.lists(
        st.builds(
            Problem,
            kind=st.sampled_from(sorted(SENTENCES)),
            path=LONG,
            there=LONG,
            asked=LONG,
            decided_by=LONG,
            fix=LONG,
        ),
        max_size=12,
    ),
    LONG,
)
def test_texts_are_short(problems, sentence):
    """Whatever the model, a text stays below 2,000 characters and 140 a row."""
    for text in (message(sentence, problems), str(unfit(problems))):
        assert len(text) < 2000
        rows = text.split("\n\n  Fix: ")[0].split("\n")[1:]
        assert all(len(line) <= 140 for line in rows)
    assert unfit(problems).problems == tuple(problems)


def test_a_long_row_keeps_its_ends():
    """Of a cell that is too long the middle is cut, and who decided stays."""
    text = message("wrong.", [row(path="value" + ".x" * 200 + ".last")])
    (line,) = text.splitlines()[2:3]
    assert line.startswith("  value.x")
    assert ".last " in line
    assert line.endswith("f32[3]  axis 1  sysid  train.py:3")


def test_what_moves_the_cursor_is_escaped():
    """A key of the user's cannot break the rows."""
    text = message("wrong.", [row(path="value['a\nb\x1b[31m']")])
    assert "value['a\\nb\\x1b[31m']" in text


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["axis"], "1 leaf does not have the axis on which it is mapped."),
        (["axis"] * 3, "3 leaves do not have the axis on which they are mapped."),
        (["conflict"] * 2, "1 place is decided differently by two stages."),
        (["conflict"] * 4, "2 places are decided differently by two stages."),
        (["size"] * 3, "the mapped leaves do not agree on the batch size: 2 differ."),
        (
            ["unknown", "static", "unknown"],
            "2 decisions point at something this value does not have; "
            "1 decision points at a static field.",
        ),
    ],
    ids=str,
)
def test_headline(kinds, expected):
    """The sentence says what is wrong, and in how many places, for each kind."""
    assert headline([Problem(kind=kind, path="x") for kind in kinds]) == expected


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_kind_has_a_sentence(kind):
    """One place and several are told apart in good English."""
    one, many = SENTENCES[kind]
    for sentence in (one, many.format(n=2)):
        assert sentence[0].islower() or sentence[0] in "12"
        assert not sentence.endswith(".")
        assert "{" not in sentence


def test_a_conflict_among_the_problems():
    """A `BindError` with a conflict is a `ConflictError` too."""
    problems = [
        Problem(kind="size", path="x"),
        *[Problem(kind="conflict", path="x")] * 2,
    ]
    assert type(unfit(problems)) is BindConflictError
    assert type(unfit(problems[:1])) is sa.BindError


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (list("abcdef"), "a, b, c, d, e, f"),
        (list("abcdefg"), "a, b, c, d, e, f and 1 more"),
    ],
    ids=len,
)
def test_few(names, expected):
    """Of many names a few are told."""
    assert few(names) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("int", "an int"),
        ("str", "a str"),
        ("f32[3]", "an f32[3]"),
        ("function len", "a function len"),
        ("u8[]", "a u8[]"),
        ("Undecided", "an Undecided"),
        ("OrderedDict", "an OrderedDict"),
        ("None", "None"),
        ("", "a "),
    ],
)
def test_with_article(noun, expected):
    """A noun has the article with which it is read."""
    assert with_article(noun) == expected


def test_count():
    """One thing and several."""
    assert [count(n, "place") for n in (0, 1, 2)] == ["0 places", "1 place", "2 places"]
    assert count(2, "leaf", "leaves") == "2 leaves"


def test_clip():
    """Long text is cut at its end, and is on one line."""
    assert clip("a  b\nc", 9) == "a b c"
    assert clip("abcdefghij", 9) == "abcdef..."


def test_no_text_is_written_elsewhere():
    """Every public class of this file is documented in the tree at its top."""
    tree = errors.__doc__
    assert all(cls.__name__ in tree for cls in CLASSES)
