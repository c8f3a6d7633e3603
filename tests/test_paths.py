"""Places: their steps, their text form both ways, the names near a name."""

import contextlib
import enum
import sys

import jax
import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
from staged_axes._words.paths import (
    Index,
    Key,
    Name,
    Span,
    code,
    item_step,
    nearest,
    parse,
    words,
)


class Colour(str, enum.Enum):
    """Strings that print as something else."""

    RED = "red"


class Order(enum.IntEnum):
    """Numbers that print as something else."""

    FIRST = 1


@pytest.mark.parametrize(
    ("item", "step"),
    [
        ("x", Name("x")),
        (Colour.RED, Name("red")),
        (np.str_("x"), Name("x")),
        ("", Name("")),
        (2, Index(2)),
        (-1, Index(-1)),
        (np.int64(2), Index(2)),
        (np.uint8(2), Index(2)),
        (Order.FIRST, Index(1)),
        (True, Key(True)),
        (np.True_, Key(True)),
        (slice(None), Span()),
        (slice(1, np.int32(3), 2), Span(1, 3, 2)),
        (None, Key(None)),
        (1.5, Key(1.5)),
        ((1, "a"), Key((1, "a"))),
        (b"x", Key(b"x")),
    ],
    ids=repr,
)
def test_item_step(item, step):
    """An item is a name, a position, a slice or a key, whatever type it comes in."""
    found = item_step(item)
    assert found == step
    assert type(found) is type(step)
    assert found != Name("another")


def test_a_key_that_cannot_be_shown():
    """A key's own `repr` may fail, and the place is shown all the same."""

    class Hostile:
        def __repr__(self):
            raise ZeroDivisionError

    assert repr(sa.AxesBuilder()[Hostile()].x) == "<place spec[<Hostile>].x>"


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ([1], "list"),
        ({}, "dict"),
        (np.zeros(2), "ndarray"),
        (slice(1.5), "slice"),
        (slice("a", "b"), "slice"),
        (([1], 2), "tuple"),
    ],
    ids=["list", "dict", "array", "float slice", "text slice", "tuple of a list"],
)
def test_item_that_names_nothing(item, kind):
    """What cannot be a key is refused, by name of its type."""
    with pytest.raises(sa.RecordError, match=f"a {kind} cannot name a place") as e:
        item_step(item)
    assert [(p.kind, p.there) for p in e.value.problems] == [("path", kind)]


def test_a_field_and_an_item_of_one_name_are_equal():
    """Steps compare by name alone, and by kind of step."""
    assert Name("x") == Name("x", is_item=True)
    assert hash(Name("x")) == hash(Name("x", is_item=True))
    assert len({Name("1"), Index(1), Key(1), Key("1")}) == 4
    assert Span(0, 2) != Span(None, 2)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (Span(), True),
        (Span(0), True),
        (Span(None, None, 1), True),
        (Span(0, None, 1), True),
        (Span(1), False),
        (Span(None, 2), False),
        (Span(None, None, -1), False),
        (Span(None, None, 2), False),
    ],
    ids=str,
)
def test_a_slice_of_everything(span, expected):
    """`[:]` in each of its spellings is every child."""
    assert span.is_all is expected


PATHS = [
    ((), "spec"),
    ((Name("a"), Name("b")), "spec.a.b"),
    ((Name("a", is_item=True),), "spec['a']"),
    ((Name("a b"),), "spec['a b']"),
    ((Name("class"),), "spec['class']"),
    ((Name("0"),), "spec['0']"),
    ((Name("it's"),), 'spec["it\'s"]'),
    ((Name("a\nb"),), "spec['a\\nb']"),
    ((Name(""),), "spec['']"),
    ((Name("ﬁ"),), "spec['ﬁ']"),
    ((Index(2), Index(-1)), "spec[2][-1]"),
    ((Span(),), "spec[:]"),
    ((Span(1),), "spec[1:]"),
    ((Span(None, -1),), "spec[:-1]"),
    ((Span(0, 9, 3),), "spec[0:9:3]"),
    ((Key((1, "a")),), "spec[(1, 'a')]"),
    ((Key(None),), "spec[None]"),
    ((Key(1.5),), "spec[1.5]"),
]


@pytest.mark.parametrize(("path", "text"), PATHS, ids=[t for _, t in PATHS])
def test_code(path, text):
    """A path prints as code."""
    assert code(path) == text


@pytest.mark.parametrize(("path", "text"), PATHS, ids=[t for _, t in PATHS])
def test_code_can_be_pasted(path, text):
    """The printed code names the very place, and `parse` reads it back."""
    place = eval(text, {"spec": sa.AxesBuilder()})
    assert place.__path__ == path
    assert parse(text.removeprefix("spec")) == path


STEPS = st.one_of(
    st.builds(Name, st.text(), st.booleans()),
    st.builds(Index, st.integers()),
    st.builds(Span, *[st.none() | st.integers()] * 3),
    st.builds(Key, st.tuples(st.integers(), st.text()) | st.none() | st.binary()),
)


@given(st.lists(STEPS, max_size=4))
def test_parse_reads_what_code_prints(path):
    """Every path survives the way to text and back."""
    assert parse(code(path, "")) == tuple(path)


@given(st.text() | st.text(".[]'\":-#\\\n 0a", max_size=8))
def test_parse_reads_any_text_or_says_no(text):
    """A text is a path that prints as code, or is refused; nothing else happens."""
    with contextlib.suppress(sa.RecordError):
        path = parse(text)
        assert parse(code(path, "")) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("layers[2].w", (Name("layers"), Index(2), Name("w"))),
        ("params['world'].mass", (Name("params"), Name("world"), Name("mass"))),
        ('params["world"]', (Name("params"), Name("world"))),
        (".wheel.drag", (Name("wheel"), Name("drag"))),
        ("[0]", (Index(0),)),
        (" x . y [ 0 ] ", (Name("x"), Name("y"), Index(0))),
        ("", ()),
        ("  ", ()),
        ("_", (Name("_"),)),
        ("_._", (Name("_"), Name("_"))),
        ("x['a>]b']", (Name("x"), Name("a>]b"))),
        ("x['#']", (Name("x"), Name("#"))),
        ("x[True]", (Name("x"), Key(True))),
        ("ö", (Name("ö"),)),
        ("x['ö']", (Name("x"), Name("ö"))),
    ],
    ids=repr,
)
def test_parse(text, path):
    """Attributes, items and slices are read as Python reads them."""
    assert parse(text) == path


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a b", 3),
        ("a..b", 3),
        ("a.class", 3),
        ("a[b]", 3),
        ("abc[x].d", 5),
        ("a[{[]: 1}]", 3),
        ("a[1:2, 3]", 3),
        ("a[1:'x']", 3),
        ("a(0)", 1),
        ("a + b", 1),
        ("a if b else c", 1),
        ("a.b, c", 1),
        ("a # b", 2),
        ("a; b", 2),
        ("a[0", 2),
        ("a\0", 1),
        ("1", 1),
        ("*", 1),
    ],
    ids=repr,
)
def test_parse_refuses(text, column):
    """What is no path is refused, with the column at which it goes wrong."""
    with pytest.raises(sa.RecordError, match="is no path into a value") as e:
        parse(text)
    (problem,) = e.value.problems
    assert problem.there == f"cannot be read from column {column} on"


@pytest.mark.parametrize("depth", [50, 100_000])
def test_parse_is_safe_with_deep_texts(depth):
    """A text that is nested without end is refused as any other."""
    with pytest.raises(sa.RecordError, match="is no path into a value"):
        parse("x" + "[" * depth)


@pytest.mark.parametrize("text", [3, None, b"x", ("a", "b"), sa.AxesBuilder().x])
def test_parse_takes_texts_alone(text):
    """What is no text is refused by its type."""
    with pytest.raises(sa.RecordError, match=r"^a path is a text, not an? "):
        parse(text)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ((jax.tree_util.GetAttrKey("a"), jax.tree_util.SequenceKey(2)), "a[2]"),
        ((jax.tree_util.DictKey("a"), jax.tree_util.DictKey(3)), "['a'][3]"),
        ((jax.tree_util.FlattenedIndexKey(4),), "[4]"),
    ],
    ids=["fields", "items", "keyless"],
)
def test_parse_reads_what_jax_prints(keys, path):
    """The text of `jax.tree_util.keystr` is a path."""
    assert parse(jax.tree_util.keystr(keys)) == parse(path)


def test_words():
    """A path as plain keys, for the functions and filters of rules."""
    path = (Name("a"), Name("b", is_item=True), Index(2), Key((1,)), Span(1))
    assert words(path) == ("a", "b", 2, (1,), "[1:]")


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("darg", ["radius", "drag", "label"], ["drag"]),
        ("DRAG", ["radius", "drag"], ["drag"]),
        ("drag", ["Drag", "DRAG"], ["Drag"]),
        ("mass", ["masses", "mass_", "maas", "gas"], ["mass_", "masses", "maas"]),
        ("qqqq", ["radius", "drag"], []),
        ("drag", [], []),
        ("drag", [3, None, "drags"], ["drags"]),
        ("", ["a"], []),
    ],
    ids=str,
)
def test_nearest(name, names, expected):
    """Names like one that was written, best first; case does not matter."""
    assert sorted(nearest(name, names)) == sorted(expected)
    assert nearest(name, names)[:1] == expected[:1]


def test_paths_are_light():
    """Steps have slots, since a big record has many."""
    assert not hasattr(Name("x"), "__dict__")
    assert sys.getsizeof(Index(1)) < 100
