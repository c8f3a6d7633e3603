"""The filters of nnx as JSON and back."""

import sys

import pytest

import json_names
import staged_axes as sa

FILTERS = {
    "type": lambda nnx: nnx.Param,
    "ellipsis": lambda nnx: ...,
    "true": lambda nnx: True,
    "false": lambda nnx: False,
    "tuple": lambda nnx: (nnx.Param, "tag", None),
    "string key": lambda nnx: nnx.PathContains("kernel"),
    "int key": lambda nnx: nnx.PathContains(3),
    "paths": lambda nnx: nnx.filterlib.PathIn(("a", 1), ("b",)),
    "of type": lambda nnx: nnx.OfType(nnx.BatchStat),
    "tag": lambda nnx: nnx.filterlib.WithTag("tag"),
    "all": lambda nnx: nnx.All(nnx.Param, nnx.Not(nnx.PathContains("bias"))),
    "any": lambda nnx: nnx.Any(nnx.Everything(), nnx.Nothing(), "tag"),
    "function inside": lambda nnx: nnx.Any(json_names.is_kernel),
    "not a tuple": lambda nnx: nnx.Not((nnx.Param, ...)),
}


@pytest.fixture
def nnx():
    """The nnx of flax; not every JAX has one that it can import."""
    return pytest.importorskip("flax.nnx", exc_type=ImportError)


def pattern_of(spec):
    """The pattern of a builder's only rule."""
    (rule,) = spec.__record__.own().rules
    return rule.pattern


@pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS)
def test_round_trip(nnx, make):
    """Every filter of nnx comes back."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, make(nnx), 0)
    assert pattern_of(sa.AxesBuilder.from_json(spec.to_json())) == make(nnx)


def test_list(nnx):
    """A list of filters comes back as a tuple, which means the same."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, [nnx.Param, nnx.BatchStat], 0)
    back = sa.AxesBuilder.from_json(spec.to_json())
    assert pattern_of(back) == (nnx.Param, nnx.BatchStat)


def test_field_that_older_releases_lack(nnx):
    """It is written only where it matters, and never silently ignored."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, nnx.PathContains("k"), 0)
    text = spec.to_json()
    assert '"filter": {"nnx": "PathContains", "key": "k"}' in text
    inexact = text.replace('"k"', '"k", "exact": false')
    if hasattr(nnx.PathContains, "exact"):
        pattern = pattern_of(sa.AxesBuilder.from_json(inexact))
        assert pattern == nnx.PathContains("k", exact=False)
    else:
        with pytest.raises(sa.RecordError, match="of this flax does not take that"):
            sa.AxesBuilder.from_json(inexact)


def test_without_nnx(monkeypatch):
    """Where flax.nnx cannot be imported, a filter of it is a fault of the text."""
    monkeypatch.setitem(sys.modules, "flax.nnx", None)
    rule = '{"filter": {"nnx": "Everything"}, "axis": 0}'
    with pytest.raises(sa.RecordError, match=r"flax\.nnx cannot be imported: ") as e:
        sa.AxesBuilder.from_json(f'{{"version": 1, "default": 0,\n"rules": [{rule}]}}')
    assert [p.path for p in e.value.problems] == ["line 2, column 22"]
