"""JSON with places: every value is found where it stands, and text is laid out."""

import json

import pytest
from hypothesis import given, strategies as st

from staged_axes import RecordError
from staged_axes._json.text import Reader, layout

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values, st.sampled_from([None, 0, 3]))
def test_reads_what_json_reads(value, indent):
    """A located value is the value that `json.loads` gives."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    reader = Reader(text, "thing")
    assert reader.read().plain() == json.loads(text)
    assert reader.problems == []


@given(values)
def test_layout_changes_nothing(value):
    """What is laid out is still the same JSON."""
    assert json.loads(layout(value)) == value


def test_layout():
    """Long lists have an item a line; objects without lists stay on one line."""
    row = {"place": "x" * 120, "axis": {"per_leaf": "a:b"}}
    long = json.dumps(row)
    assert layout(row) == long
    assert layout({"a": [1, 2], "b": 3}) == '{"a": [1, 2], "b": 3}'
    assert layout({"a": [row, []], "é": 3}) == (
        f'{{\n  "a": [\n    {long},\n    []\n  ],\n  "é": 3\n}}'
    )


def places(node):
    """Every scalar of a located value with its offset, and every key."""
    if isinstance(node.value, dict):
        found = list(node.keys.items())
        return found + [p for member in node.value.values() for p in places(member)]
    if isinstance(node.value, list):
        return [p for item in node.value for p in places(item)]
    return [(node.value, node.offset)]


def test_offsets():
    """Offsets are those of the first characters, also past escapes and brackets."""
    text = '{"a\\"]}": [1, "[,:", {"b": null}],\n "c": -2.5e3}'
    assert places(Reader(text, "thing").read()) == [
        ('a"]}', 1),
        ("c", 36),
        (1, 11),
        ("[,:", 14),
        ("b", 22),
        (None, 27),
        (-2500.0, 41),
    ]


def test_fault_names_line_and_column():
    """Lines and columns start at 1."""
    reader = Reader('\n\n {"a":\n  1}', "thing")
    root = reader.read()
    reader.fault(root, "root")
    reader.fault(root.value["a"], "one", "make it two")
    with pytest.raises(RecordError, match="the text is no thing: 2 things are") as e:
        raise reader.error()
    assert [(p.path, p.line, p.there, p.fix) for p in e.value.problems] == [
        ("line 3, column 2", 3, "root", ""),
        ("line 4, column 3", 4, "one", "make it two"),
    ]


def test_members():
    """Members that are known and of the right type come through, others are faults."""
    reader = Reader('{"name": "x", "line": true, "any": [], "nam": 1}', "thing")
    known = {"name": str, "line": int, "any": object, "more": str}
    found = reader.members(reader.read(), known, ["name", "more"])
    assert {key: node.plain() for key, node in found.items()} == {
        "name": "x",
        "any": [],
    }
    assert [(p.path, p.there, p.fix) for p in reader.problems] == [
        ("line 1, column 1", "'more' is missing", ""),
        ("line 1, column 23", "true or false instead of an int", ""),
        ("line 1, column 40", "unknown key 'nam'", 'did you mean "name" ?'),
    ]


def test_members_of_something_else():
    """What is no object has no members, and that is one fault."""
    reader = Reader("[]", "thing")
    assert reader.members(reader.read(), {"a": str}, ["a"]) == {}
    assert [p.there for p in reader.problems] == ["a list instead of an object"]


def test_huge_number():
    """A number that Python refuses to read is a fault, not a crash."""
    with pytest.raises(RecordError, match="Exceeds the limit") as e:
        Reader("1" * 5_000, "thing").read()
    assert e.value.problems[0].path == "line 1, column 1"
