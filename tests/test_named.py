"""Names under which things can be imported, and what is found under them."""

import collections
import collections.abc
import functools
import re

import jax
import pytest

import json_names
from staged_axes._words.named import name_of, named


@pytest.mark.parametrize(
    ("x", "name"),
    [
        (json_names.by_size, "json_names:by_size"),
        (json_names.jitted, "json_names:jitted"),
        (json_names.Model, "json_names:Model"),
        (json_names.Model.by_class, "json_names:Model.by_class"),
        (json_names.Model.by_instance, "json_names:Model.by_instance"),
        (len, "builtins:len"),
        (..., "builtins:Ellipsis"),
        (dict, "builtins:dict"),
        (collections.OrderedDict, "collections:OrderedDict"),
        (jax.ShapeDtypeStruct, "jax:ShapeDtypeStruct"),
    ],
    ids=str,
)
def test_there_and_back(x, name):
    """The name is the shortest one that gives the same thing back."""
    assert name_of(x) == name
    assert named(name) == x


def main_function():
    """What a function of a script looks like."""


main_function.__module__ = "__main__"


@functools.wraps(json_names.by_size)
def impostor(leaf):
    """A function that has another one's name."""


@pytest.mark.parametrize(
    "x",
    [
        lambda: 0,
        functools.partial(len),
        json_names.Model(None, None).by_instance,
        main_function,
        impostor,
        3,
        None,
        "text",
    ],
    ids=str,
)
def test_nothing_to_import(x):
    """Without such a name the answer is None."""
    assert name_of(x) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("len", "'len' is not of the form 'module:name'"),
        (":len", "':len' is not of the form 'module:name'"),
        ("builtins:", "'builtins:' is not of the form 'module:name'"),
        (".x:y", "'.x:y' cannot be imported: "),
        ("not.there:y", "'not.there:y' cannot be imported: No module named 'not'"),
        ("json_names:a.b", "'json_names:a.b' cannot be imported: module 'json_names'"),
    ],
)
def test_nothing_found(name, message):
    """A name that leads nowhere says why."""
    with pytest.raises(LookupError, match=re.escape(message)):
        named(name)
