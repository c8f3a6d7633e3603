"""A record from its text: what may be left out, and what is wrong, line by line."""

import numpy as np
import pytest

import staged_axes as sa


def test_text_written_by_hand():
    """Stage, file and line may be left out; the reading line then decides."""
    spec = sa.AxesBuilder.from_json("""{
        "version": 1, "default": 0,
        "decisions": [{"place": "layers[:].w", "axis": 1},
                      {"place": "bias", "axis": null}]
    }""")
    bound = spec.bind(
        {"layers": [{"w": np.ones((2, 3))}], "bias": np.ones(2), "x": np.ones(3)}
    )
    assert bound.leaf_axes == (None, 1, 0)
    sources = {d.source for d in spec.__record__.own().decisions}
    assert {(s.file, s.line) for s in sources} == {
        (__file__, test_text_written_by_hand.__code__.co_firstlineno + 2)
    }


def refusals(text):
    """What is wrong with a text: line and column, and the sentence."""
    with pytest.raises(sa.RecordError, match="the text is no record with an axis") as e:
        sa.AxesBuilder.from_json(text)
    assert len(str(e.value)) <= 2000
    return [(p.path, p.there) for p in e.value.problems]


def test_everything_wrong_at_once():
    """One error has every fault of the text, with line and column."""
    text = """{
  "version": 1, "defalt": 0, "default": true,
  "decisions": [
    {"place": "a[", "axis": 0},
    {"place": "b", "axis": 1.5, "stage": 3}
  ],
  "rules": [{"axis": 0}]
}"""
    with pytest.raises(sa.RecordError, match="6 things are wrong") as e:
        sa.AxesBuilder.from_json(text)
    assert (
        str(e.value)
        == """\
the text is no record with an axis for each place: 6 things are wrong.

  line 2, column 17  unknown key 'defalt'
  line 2, column 41  an axis is an int or None, and default was given a bool
  line 4, column 15  'a[' is no path into a value (column 2)
  line 5, column 42  an int instead of a string
  line 5, column 28  an axis is an int or None, and spec.b was given a float
  line 7, column 13  none of 'glob', 'regex', 'function', 'filter'

  Fix: did you mean "default" ?"""
    )
    assert [p.line for p in e.value.problems] == [2, 2, 4, 5, 5, 7]


@pytest.mark.parametrize(
    ("text", "place", "there"),
    [
        ("", "line 1, column 1", "Expecting value"),
        (
            '{"version": 1,\n "default" 0}',
            "line 2, column 12",
            "Expecting ':' delimiter",
        ),
        ("{} {}", "line 1, column 4", "Extra data"),
        ("[" * 100_000, "line 1, column 1", "nested too deeply"),
        ('{"default": 0', "line 1, column 14", "Expecting ',' delimiter"),
    ],
    ids=["empty", "colon", "extra", "deep", "cut off"],
)
def test_no_json(text, place, there):
    """A text that is no JSON is one fault."""
    assert refusals(text) == [(place, there)]


@pytest.mark.parametrize("text", [b"{}", None, {"version": 1}], ids=str)
def test_no_text(text):
    """Only a string is read."""
    with pytest.raises(sa.RecordError, match="a record is read from a string") as e:
        sa.AxesBuilder.from_json(text)
    assert e.value.problems[0].there == type(text).__name__.replace("NoneType", "None")


@pytest.mark.parametrize(
    ("version", "there"),
    [
        ("2", "unknown version 2"),
        ("0", "unknown version 0"),
        ('"1"', "a string instead of an int"),
        ("true", "true or false instead of an int"),
    ],
)
def test_unknown_version(version, there):
    """Of another version nothing else is judged."""
    text = f'{{"new": [], "version": {version}, "default": 0}}'
    assert ("line 1, column 24", there) in refusals(text)
    if "unknown" in there:
        assert len(refusals(text)) == 1


def document(decisions="", rules="", default="0", more=""):
    """A text with one thing in it, on line 3 or 5."""
    return (
        f'{{"version": 1, "default": {default}{more},\n'
        f'"decisions": [\n{decisions}\n], "rules": [\n{rules}\n]}}'
    )


@pytest.mark.parametrize(
    ("decisions", "column", "there"),
    [
        ("3", 1, "an int instead of an object"),
        ("[]", 1, "a list instead of an object"),
        ('{"axis": 0}', 1, "'place' is missing"),
        ('{"place": "x"}', 1, "'axis' is missing"),
        ('{"place": 3, "axis": 0}', 11, "an int instead of a string"),
        ('{"place": "x", "axes": 0, "axis": 0}', 16, "unknown key 'axes'"),
        ('{"place": "x", "axis": 0, "axis": 1}', 27, "'axis' is here a second time"),
        ('{"place": "x y", "axis": 0}', 11, "'x y' is no path into a value (column 3)"),
        (
            '{"place": "x", "axis": true}',
            24,
            "an axis is an int or None, and spec.x was given a bool",
        ),
        (
            '{"place": "x", "axis": [0, {"a": 1}]}',
            24,
            "an axis is an int or None, and spec.x was given a list",
        ),
        ('{"place": "x", "axis": "statc"}', 24, "no axis: the string 'statc'"),
        (
            '{"place": "x", "axis": {}}',
            24,
            "an object with one key is needed: 'builder', 'per_leaf', 'from_node'",
        ),
        (
            '{"place": "x", "axis": {"per_laef": "a:b"}}',
            24,
            "an object with one key is needed: 'builder', 'per_leaf', 'from_node'",
        ),
        ('{"place": "x", "axis": {"per_leaf": 3}}', 37, "an int instead of a string"),
        (
            '{"place": "x", "axis": {"per_leaf": "len"}}',
            37,
            "'len' is not of the form 'module:name'",
        ),
        (
            '{"place": "x", "axis": {"per_leaf": "not_there:f"}}',
            37,
            "'not_there:f' cannot be imported: No module named 'not_there'",
        ),
        (
            '{"place": "x", "axis": {"per_leaf": "json_names:f"}}',
            37,
            "'json_names:f' cannot be imported: "
            "module 'json_names' has no attribute 'f'",
        ),
        (
            '{"place": "x", "axis": {"per_leaf": "json_names:number"}}',
            37,
            "'json_names:number' is not a function, but int",
        ),
        ('{"place": "x", "axis": 0, "line": "3"}', 35, "a string instead of an int"),
        (
            '{"place": "x", "axis": 0, "override": 1}',
            39,
            "an int instead of true or false",
        ),
        (
            '{"place": "x", "axis": {"builder": 0}}',
            36,
            "no builder that is complete above has this id",
        ),
        (
            '{"place": "x", "axis": {"builder": {"decisions": []}}}',
            36,
            "'default' is missing",
        ),
        (
            '{"place": "x", "axis": {"builder": {"default": 0, "id": 0}}}',
            57,
            "a second builder with the id 0",
        ),
        (
            '{"place": "x", "axis": {"builder": {"default": 0, "class": "a:b"}}}',
            51,
            "unknown key 'class'",
        ),
        (
            '{"place": "x", "axis": 0}, {"place": "[\'x\']", "axis": 0}',
            28,
            "the same stage decides spec.x at line 3",
        ),
        (
            '{"place": "x", "axis": 0}, {"place": "x", "axis": 1, "stage": "b"}',
            28,
            "spec.x is decided differently at line 3",
        ),
    ],
)
def test_wrong_decisions(decisions, column, there):
    """A decision that is no decision is pointed at."""
    assert refusals(document(decisions)) == [(f"line 3, column {column}", there)]


@pytest.mark.parametrize(
    ("rules", "column", "there"),
    [
        (
            '{"axis": 0}',
            1,
            "none of 'glob', 'regex', 'function', 'filter'",
        ),
        (
            '{"glob": "a", "regex": "b", "axis": 0}',
            1,
            "more than one of 'glob', 'regex', 'function', 'filter'",
        ),
        ('{"glob": "a"}', 1, "'axis' is missing"),
        (
            '{"glob": "a", "axis": 1.0}',
            23,
            "an axis is an int or None, and rule was given a float",
        ),
        ('{"glob": "a", "flags": [], "axis": 0}', 24, "only a regex has flags"),
        (
            '{"glob": "a", "under": "[", "axis": 0}',
            24,
            "'[' is no path into a value (column 1)",
        ),
        (
            '{"regex": "(", "axis": 0}',
            11,
            "no regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            '{"regex": "a", "flags": ["I", "Q"], "axis": 0}',
            31,
            "no flag of a regex: 'Q'",
        ),
        ('{"regex": "a", "flags": [[]], "axis": 0}', 26, "no flag of a regex: []"),
        (
            '{"function": "json_names:number", "axis": 0}',
            14,
            "'json_names:number' is not a function, but int",
        ),
        ('{"filter": 3, "axis": 0}', 12, "an int is no nnx filter"),
        ('{"filter": [1.5], "axis": 0}', 13, "a float is no nnx filter"),
        ('{"filter": {}, "axis": 0}', 12, "'name' is missing"),
        (
            '{"filter": {"name": "json_names:number"}, "axis": 0}',
            21,
            "'json_names:number' is not a filter, but int",
        ),
        ('{"filter": {"nnx": "PathHas"}, "axis": 0}', 20, "no nnx filter: 'PathHas'"),
        ('{"filter": {"nnx": []}, "axis": 0}', 20, "no nnx filter: []"),
        ('{"filter": {"nnx": "PathContains"}, "axis": 0}', 12, "'key' is missing"),
        (
            '{"filter": {"nnx": "Not", "paths": [], "predicate": true}, "axis": 0}',
            27,
            "unknown key 'paths'",
        ),
        (
            '{"axis": 0, "filter": {"nnx": "OfType", "type":{"name": "json_names:f"}}}',
            57,
            "'json_names:f' cannot be imported: "
            "module 'json_names' has no attribute 'f'",
        ),
        (
            '{"axis": 0, "filter": {"nnx": "OfType", "type":{"name": "builtins:len"}}}',
            57,
            "'builtins:len' is not a class, but function len",
        ),
    ],
)
def test_wrong_rules(rules, column, there):
    """A rule that is no rule is pointed at."""
    if '"nnx"' in rules:
        pytest.importorskip("flax.nnx", exc_type=ImportError)
    assert refusals(document(rules=rules)) == [(f"line 5, column {column}", there)]


@pytest.mark.parametrize(
    ("default", "more", "column", "there"),
    [
        ('"undecide"', "", 27, "no axis: the string 'undecide'"),
        ('{"builder": {"default": 0}}', "", 27, "a builder cannot be a default"),
        (
            "0",
            ', "class": "json_names:by_size"',
            39,
            "'json_names:by_size' is not a class, but function by_size",
        ),
        ("0", ', "class": null', 39, "null instead of a string"),
        ("0", ', "verson": 1', 30, "unknown key 'verson'"),
    ],
)
def test_wrong_head(default, more, column, there):
    """What is wrong with the record itself is pointed at."""
    text = document(default=default, more=more)
    assert refusals(text) == [(f"line 1, column {column}", there)]


def test_place_that_the_class_does_not_have():
    """With a class, places are checked as if they were written."""
    text = document(
        '{"place": "wheel.darg", "axis": 0},{"place": "wheel.label", "axis": 0}',
        more=', "class": "json_names:Model"',
    )
    assert refusals(text) == [
        ("line 3, column 11", "Wheel has no field 'darg'"),
        (
            "line 3, column 46",
            "Wheel.label is a static field: it is no leaf and has no axis",
        ),
    ]
