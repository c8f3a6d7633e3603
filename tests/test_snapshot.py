"""Copies of what can be changed in place: the same by what they hold, and apart."""

import collections
import types

import jax
import numpy as np
import pytest

from explicit_loop import fingerprint
from materials import STATICS, Frozen, Model, mutate
from staged_axes._snapshot import can_change, copied, snapshot
from tagged import Items, Row, Setting, Tagged

CHANGEABLE = {
    "list": lambda: [1, [2]],
    "list by another name": lambda: Items([1]),
    "deque": lambda: collections.deque([1, [2]], maxlen=3),
    "tuple of a list": lambda: ([1],),
    "tuple by another name": lambda: Row(([1],)),
    "dict": lambda: {"a": [1]},
    "ordered dict": lambda: collections.OrderedDict(a=[1], b=2),
    "default dict": lambda: collections.defaultdict(list, a=[1]),
    "mapping proxy": lambda: types.MappingProxyType({"a": [1]}),
    "set": lambda: {1},
    "array": lambda: np.arange(3),
    "array of objects": lambda: np.array([[1], None, [2, 3]], object),
    "object without a hash": lambda: Setting([1]),
    "frozen object of a list": lambda: Frozen([1]),
    "node": lambda: Model(np.arange(2), None, [1], [2]),
}


def change(x):
    """Changes it in place, whatever it is."""
    if isinstance(x, types.MappingProxyType):
        x["a"].append(1)
    elif isinstance(x, collections.deque):
        x[1].append(1)
    elif isinstance(x, Frozen):
        x.gain.append(1)
    elif isinstance(x, Model):
        change(x.s)
    elif isinstance(x, np.ndarray) and x.dtype == object:
        x[0].append(1)
    else:
        mutate(x)


@pytest.mark.parametrize("name", CHANGEABLE)
def test_a_copy_stays_what_it_was(name):
    """The original is changed at some depth; the copy holds what it held."""
    original = CHANGEABLE[name]()
    before = fingerprint(original)
    kept = copied(original)
    assert fingerprint(kept) == before
    change(original)
    assert fingerprint(original) != before, "the test changes nothing"
    assert fingerprint(kept) == before


@pytest.mark.parametrize("x", [x for family in STATICS for x in family], ids=repr)
def test_a_copy_is_the_same_data(x):
    """Of the same type and content at any depth."""
    assert fingerprint(copied(x)) == fingerprint(x)
    assert type(copied(x)) is type(x)


@pytest.mark.parametrize(
    "x", [1, "text", (1, "a"), frozenset({1}), print, Frozen(1), object()], ids=repr
)
def test_what_cannot_change_is_kept(x):
    """No copy is made of it."""
    assert copied(x) is x


def test_attributes_of_a_tuple():
    """A tuple by another name may have attributes, too."""

    class Named(tuple):
        pass

    x = Named(([1],))
    x.unit = "m"
    assert copied(x).unit == "m"
    assert type(copied(x)) is Named


def test_a_treedef():
    """A snapshot is equal to the treedef, and its static data are its own."""
    static = [1, 2]
    treedef = jax.tree_util.tree_structure({"a": Tagged(1, static), "b": (1, 2)})
    own = snapshot(treedef)
    assert own == treedef
    assert can_change(treedef)
    static.append(3)
    assert own != treedef
    assert own.unflatten([1, 2, 3])["a"].s == [1, 2]
    assert not can_change(jax.tree_util.tree_structure({"a": Tagged(1, "s")}))
