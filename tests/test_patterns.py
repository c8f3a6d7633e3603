"""Which leaves the pattern of a rule means."""

import fnmatch
import functools
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
from staged_axes._structure import patterns as _patterns

X = np.zeros(3)
VALUE = {
    "dense": {"bias": X, "kernel": X},
    "layers": [{"w": X}, {"w": X, "b/c": X}],
    "a b": {1: X},
    "[x]": X,
}
# In flatten order.
TEXTS = [
    "[x]",
    "a b/1",
    "dense/bias",
    "dense/kernel",
    "layers/0/w",
    "layers/1/b/c",
    "layers/1/w",
]


def matched(pattern):
    """The texts of the leaves that a pattern means."""
    return [TEXTS[i] for i in _patterns.matching(pattern, VALUE)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**", TEXTS),
        ("*", TEXTS),
        ("", TEXTS),
        ("dense", ["dense/bias", "dense/kernel"]),
        ("dense/", []),
        ("dense/bias", ["dense/bias"]),
        ("bias", []),
        ("**/bias", ["dense/bias"]),
        ("*/bias", ["dense/bias"]),
        ("*/w", []),
        ("*/*/w", ["layers/0/w", "layers/1/w"]),
        ("layers/*/w", ["layers/0/w", "layers/1/w"]),
        ("layers/**/w", ["layers/0/w", "layers/1/w"]),
        ("layers/**", ["layers/0/w", "layers/1/b/c", "layers/1/w"]),
        ("layers/1", ["layers/1/b/c", "layers/1/w"]),
        ("**/1", ["a b/1", "layers/1/b/c", "layers/1/w"]),
        ("**/b*", ["dense/bias", "layers/1/b/c"]),
        ("**/b/c", ["layers/1/b/c"]),
        ("layers/1/[b]/c", ["layers/1/b/c"]),
        ("layers/1/[!a]", ["layers/1/b/c", "layers/1/w"]),
        ("layers/1/b", ["layers/1/b/c"]),
        ("layers[!a]1/w", []),
        ("[!]/w", []),
        ("layers/[1-0]/w", []),
        ("layers/[!1-0]/w", ["layers/0/w", "layers/1/w"]),
        ("layers/[]/w", []),
        ("dense/b*s", ["dense/bias"]),
        ("dense/*n*", ["dense/kernel"]),
        ("de?se/bias", ["dense/bias"]),
        ("layers/?/w", ["layers/0/w", "layers/1/w"]),
        ("layers/[01]/w", ["layers/0/w", "layers/1/w"]),
        ("layers/[!0]/w", ["layers/1/w"]),
        ("layers/[0-9]/w", ["layers/0/w", "layers/1/w"]),
        ("[[]x]", ["[x]"]),
        ("a b", ["a b/1"]),
        ("a b/1", ["a b/1"]),
        ("DENSE", []),
        ("dense.bias", []),
        ("den", []),
        ("**/kernel/**", ["dense/kernel"]),
        ("**/dense/**", ["dense/bias", "dense/kernel"]),
    ],
    ids=repr,
)
def test_globs(pattern, expected):
    """A glob matches the whole path of a leaf, or that of a node above it."""
    assert matched(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"kernel", ["dense/kernel"]),
        (r"^w", []),
        (r"w$", ["layers/0/w", "layers/1/w"]),
        (r"layers/\d", ["layers/0/w", "layers/1/b/c", "layers/1/w"]),
        (r"KERNEL", []),
        (re.compile("KERNEL", re.IGNORECASE), ["dense/kernel"]),
        (r"^(?!layers)", ["[x]", "a b/1", "dense/bias", "dense/kernel"]),
        (r"", TEXTS),
    ],
    ids=str,
)
def test_regular_expressions(pattern, expected):
    """A regular expression is searched for in the path of a leaf."""
    assert matched(re.compile(pattern)) == expected


def test_functions_see_plain_paths_and_leaves():
    """A function is called with the keys and the leaf, for each leaf."""
    seen = []

    def pattern(path, leaf):
        seen.append((path, leaf))
        return path[-1] == "w"

    value = {"layers": [{"w": X}], "n": "text"}
    assert _patterns.matching(pattern, value) == [0]
    assert [path for path, _ in seen] == [("layers", 0, "w"), ("n",)]
    assert seen[0][1] is X
    assert seen[1][1] == "text"


class Callable:
    """A function as an object, and as a method."""

    def __call__(self, path, leaf):
        return "kernel" in path

    def method(self, path, leaf):
        return "kernel" in path


FUNCTIONS = {
    "object": Callable(),
    "method": Callable().method,
    "partial": functools.partial(lambda name, path, leaf: name in path, "kernel"),
    "lambda": lambda path, leaf: "kernel" in path,
}


@pytest.mark.parametrize("pattern", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_of_every_kind(pattern):
    """Whatever can be called with a path and a leaf is a pattern."""
    assert matched(pattern) == ["dense/kernel"]


def by_parts(pattern, path):
    """A glob, by the definition: step by step, with `**` for any steps."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return by_parts(pattern[1:], path) or (
            bool(path) and by_parts(pattern, path[1:])
        )
    return (
        bool(path)
        and fnmatch.fnmatchcase(path[0], pattern[0])
        and by_parts(pattern[1:], path[1:])
    )


STEPS = st.sampled_from(["a", "b", "ab", "0", "cab"])


@given(
    st.lists(
        st.sampled_from(["**", "*", "?", "a", "a*", "*b", "[ab]", "[!a]", "0"]),
        min_size=1,
        max_size=4,
    ),
    st.lists(STEPS, min_size=1, max_size=4),
)
def test_globs_by_definition(pattern, path):
    """Whole steps of a glob mean what they mean one by one."""
    value = X
    for step in reversed(path):
        value = {step: value}
    above = [path[:depth] for depth in range(len(path) + 1)]
    expected = any(by_parts(pattern, part) for part in above)
    assert bool(_patterns.matching("/".join(pattern), value)) is expected


@given(st.text(max_size=12) | st.text("*?[]!-^/a\\", max_size=8))
def test_any_text_is_a_glob(pattern):
    """No text breaks a rule: it matches something or it does not."""
    assert set(_patterns.matching(pattern, VALUE["dense"])) <= {0, 1}


def test_rules_from_a_mount_see_paths_from_there():
    """A mounted builder's patterns need not know where it is mounted."""
    inner, spec = sa.AxesBuilder(default=sa.UNDECIDED), sa.AxesBuilder(default=None)
    sa.rule(inner, "w", 0)
    sa.rule(inner, lambda path, _: path == ("b",), 0)
    spec.layers[:] = inner
    value = {"layers": [{"w": X, "b": X}] * 2, "w": X}
    assert spec.bind(value).leaf_axes == (0, 0, 0, 0, None)


# Filters of nnx -----------------------------------------------------------------


@pytest.fixture
def nnx():
    """The filters' home."""
    return pytest.importorskip("flax.nnx", exc_type=ImportError)


@pytest.fixture
def state(nnx):
    """The state of a small network, with its two kinds of variables."""
    net = nnx.Sequential(
        nnx.Linear(2, 3, rngs=nnx.Rngs(0)), nnx.BatchNorm(3, rngs=nnx.Rngs(1))
    )
    return nnx.state(net)


def kinds(nnx, state, wanted):
    """The leaves below variables of a kind, found by nnx itself."""
    flat = getattr(nnx, "to_flat_state", nnx.State.flat_state)(state)
    flat = flat.items() if hasattr(flat, "items") else flat
    return [i for i, (path, x) in enumerate(flat) if wanted(tuple(path), x)]


def is_param(nnx, x):
    """Is it a parameter, whatever this release of flax calls its state?"""
    return issubclass(type(x) if isinstance(x, nnx.Variable) else x.type, nnx.Param)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda nnx: nnx.Param, lambda nnx, p, x: is_param(nnx, x)),
        (lambda nnx: nnx.BatchStat, lambda nnx, p, x: not is_param(nnx, x)),
        (lambda nnx: nnx.PathContains("kernel"), lambda nnx, p, x: "kernel" in p),
        (lambda nnx: (nnx.Param, nnx.BatchStat), lambda nnx, p, x: True),
        (lambda nnx: nnx.Not(nnx.Param), lambda nnx, p, x: not is_param(nnx, x)),
        (
            lambda nnx: nnx.All(nnx.Param, nnx.PathContains("bias")),
            lambda nnx, p, x: is_param(nnx, x) and "bias" in p,
        ),
        (lambda nnx: ..., lambda nnx, p, x: True),
        (lambda nnx: True, lambda nnx, p, x: True),
        (lambda nnx: False, lambda nnx, p, x: False),
    ],
    ids=["Param", "BatchStat", "path", "any", "not", "all", "...", "True", "False"],
)
def test_nnx_filters(nnx, state, make, wanted):
    """A filter of nnx takes the variables that nnx takes."""
    expected = kinds(nnx, state, functools.partial(wanted, nnx))
    assert _patterns.matching(make(nnx), state) == expected


def test_nnx_filters_take_modules_of_other_containers(nnx, state):
    """Variables are found in a dict of states, each with all of its leaves."""
    value = {"a": np.zeros(1), "net": state}
    found = _patterns.matching(nnx.Param, value)
    assert found == [i + 1 for i in _patterns.matching(nnx.Param, state)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (lambda p, x: True, False),
        (functools.partial(max), False),
        (Callable(), False),
        (Callable().method, False),
        (..., True),
        (True, True),
        (int, True),
        ((int, str), True),
        (["a"], True),
    ],
    ids=str,
)
def test_what_is_a_filter(pattern, expected):
    """A function is called with path and leaf; what nnx alone knows is a filter."""
    assert _patterns.is_nnx_filter(pattern) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("a", True), (re.compile("a"), True), (max, False), (..., False)],
    ids=str,
)
def test_is_by_path(pattern, expected):
    """A glob and a regular expression need no leaf to be looked at."""
    assert _patterns.is_by_path(pattern) is expected
