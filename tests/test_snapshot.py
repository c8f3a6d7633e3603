"""What can be changed in place: copies of it, and whether it was."""

import collections
import types

import jax
import numpy as np
import pytest

from explicit_loop import fingerprint
from materials import STATICS, Frozen, Model, mutate
from staged_axes._programs.snapshot import Premise, Snapshot, can_change
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
}


def change(x):
    """Changes it in place, whatever it is."""
    if isinstance(x, Frozen):
        x.gain.append(1)
    elif isinstance(x, Model):
        x.s.append(1)
    elif isinstance(x, types.MappingProxyType):
        x["a"].append(1)
    elif isinstance(x, collections.deque):
        x[1].append(1)
    elif isinstance(x, np.ndarray) and x.dtype == object:
        x[0].append(1)
    else:
        mutate(x)


@pytest.mark.parametrize("name", CHANGEABLE)
def test_a_copy_stays_what_it_was(name):
    """The original is changed at some depth; the copy holds what it held."""
    original = CHANGEABLE[name]()
    before = fingerprint(original)
    kept = Snapshot().of(original)
    assert fingerprint(kept) == before
    change(original)
    assert fingerprint(original) != before, "the test changes nothing"
    assert fingerprint(kept) == before


@pytest.mark.parametrize("x", [x for family in STATICS for x in family], ids=repr)
def test_a_copy_is_the_same_data(x):
    """Of the same type and content at any depth."""
    copy = Snapshot().of(x)
    assert fingerprint(copy) == fingerprint(x)
    assert type(copy) is type(x)


OBJECTS = {
    "object without a hash": lambda: Setting([1]),
    "frozen object of a list": lambda: Frozen([1]),
    "node": lambda: Model(np.arange(2), None, [1], [2]),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_kept(name):
    """Some equal only themselves; that they may change is known."""
    x = OBJECTS[name]()
    now = Snapshot()
    assert now.of(([x], 1))[0][0] is x
    assert not now.is_whole
    assert can_change(x)


@pytest.mark.parametrize("name", CHANGEABLE)
def test_copies_of_plain_data_are_whole(name):
    """Nothing that is left in them can change."""
    now = Snapshot()
    now.of(CHANGEABLE[name]())
    assert now.is_whole


@pytest.mark.parametrize("name", [*CHANGEABLE, *OBJECTS])
def test_a_premise(name):
    """It holds until something is changed in place, at some depth."""
    x = {**CHANGEABLE, **OBJECTS}[name]()
    premise = Premise.of(("text", x))
    assert premise.holds()
    change(x)
    assert not premise.holds()


def test_no_premise_is_needed():
    """What cannot change always holds."""
    assert Premise.of(("text", (1, frozenset({2})), print, Frozen(1))) is None


@pytest.mark.parametrize(
    "x", [1, "text", (1, "a"), frozenset({1}), print, Frozen(1), object()], ids=repr
)
def test_what_cannot_change_is_kept(x):
    """No copy is made of it."""
    assert Snapshot().of(x) is x


def test_attributes_of_a_tuple():
    """A tuple by another name may have attributes, too."""

    class Named(tuple):
        pass

    x = Named(([1],))
    x.unit = "m"
    assert Snapshot().of(x).unit == "m"
    assert type(Snapshot().of(x)) is Named


def test_a_treedef():
    """A snapshot is equal to the treedef, and its static data are its own."""
    static = [1, 2]
    treedef = jax.tree_util.tree_structure({"a": Tagged(1, static), "b": (1, 2)})
    own = Snapshot().treedef(treedef)
    assert own == treedef
    assert can_change(treedef)
    static.append(3)
    assert own != treedef
    assert own.unflatten([1, 2, 3])["a"].s == [1, 2]
    assert not can_change(jax.tree_util.tree_structure({"a": Tagged(1, "s")}))


def test_one_object_has_one_copy():
    """What was one object for the function, by `is`, is one in the copy."""
    shared = [1]
    first, second = Snapshot().of((shared, [shared]))
    assert first is second[0]
    assert first is not shared
