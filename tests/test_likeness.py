"""A likeness equals the treedefs with the very same static data, and no other."""

import collections
import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from flax.core import FrozenDict

from staged_axes._programs.likeness import likeness
from staged_axes._structure.content import Uncomparable

structure = jax.tree.structure
Pair = collections.namedtuple("Pair", "p q")


@struct.dataclass
class Box:
    x: object
    s: object = struct.field(pytree_node=False, default=None)


@dataclasses.dataclass(frozen=True)
class Config:
    rate: object


class Hidden:
    """Its metadata is the treedef of its fields."""

    def __init__(self, fields):
        self.fields = fields


jax.tree_util.register_pytree_node(
    Hidden,
    lambda h: jax.tree.flatten(h.fields),
    lambda treedef, leaves: Hidden(jax.tree.unflatten(treedef, leaves)),
)

ONE_MILLION = 1_000_000
ARRAY = np.arange(3)
CONFIG = Config(1)

SAME = {
    "nothing static": lambda: ([1, {"a": 2}], (None,)),
    "string": lambda: Box(1, "a"),
    "number": lambda: Box(1, ONE_MILLION),
    "tuple": lambda: Box(1, ("a", (1, None))),
    "list": lambda: Box(1, ["a", [1]]),
    "dict": lambda: Box(1, {"a": {"b": 1}}),
    "array": lambda: Box(1, ARRAY),
    "equal array": lambda: Box(1, np.arange(3)),
    "set": lambda: Box(1, {1, 2}),
    "frozen object": lambda: Box(1, CONFIG),
    "function": lambda: Box(1, len),
    "treedef": lambda: Box(1, structure((1, Box(2, "b")))),
    "metadata that is a treedef": lambda: Hidden({"a": 1, "b": 2}),
    "dict of dicts": lambda: {"a": 1, "b": {"c": 2}},
    "numbers as keys": lambda: {1: 1, 2: 2},
    "ordered dict": lambda: collections.OrderedDict(b=1, a=2),
    "default dict": lambda: collections.defaultdict(list, a=1),
    "named tuple": lambda: Pair(1, 2),
    "frozen dict": lambda: FrozenDict(a=1),
    "equinox": lambda: eqx.nn.Linear(2, 3, key=jax.random.key(0)),
    "partial": lambda: jax.tree_util.Partial(jnp.add, 1),
}

OTHER = {
    "1 and True": (Box(1, 1), Box(1, True)),
    "1 and 1.0": (Box(1, 1), Box(1, 1.0)),
    "0.0 and -0.0": (Box(1, 0.0), Box(1, -0.0)),
    "string and string": (Box(1, "a"), Box(1, "b")),
    "string and numpy string": (Box(1, "a"), Box(1, np.str_("a"))),
    "tuple and list": (Box(1, (1, 2)), Box(1, [1, 2])),
    "tuple and named tuple": (Box(1, ((1, 2), 0)), Box(1, (Pair(1, 2), 0))),
    "deep in a tuple": (Box(1, (("a", (1,)),)), Box(1, (("a", (True,)),))),
    "in a dict": (Box(1, {"a": 1}), Box(1, {"a": True})),
    "dict and ordered dict": (
        Box(1, {"a": 1}),
        Box(1, collections.OrderedDict(a=1)),
    ),
    "order of a dict": (Box(1, {"a": 1, "b": 2}), Box(1, {"b": 2, "a": 1})),
    "dtype": (Box(1, np.arange(2)), Box(1, np.arange(2.0))),
    "array and list": (Box(1, np.arange(2)), Box(1, [0, 1])),
    "none and array": (Box(1, None), Box(1, np.arange(2))),
    "string and array": (Box(1, "a"), Box(1, np.array(["a", "b"]))),
    "array and none": (Box(1, np.arange(2)), Box(1, None)),
    "treedef and none": (Box(1, structure((1, 2))), Box(1, None)),
    "treedef and treedef": (Box(1, structure((1, 2))), Box(1, structure([1, 2]))),
    "static in a treedef": (
        Box(1, structure(Box(1, 1))),
        Box(1, structure(Box(1, True))),
    ),
    "keys": ({1: 1}, {True: 1}),
    "order of keys": (
        collections.OrderedDict(a=1, b=2),
        collections.OrderedDict(b=2, a=1),
    ),
    "default": (
        collections.defaultdict(list, a=1),
        collections.defaultdict(dict, a=1),
    ),
    "named tuple and tuple": (Pair(1, 2), (1, 2)),
    "number of children": ([1, 2], [1, 2, 3]),
    "nesting": ([[1], 2], [1, [2]]),
    "none and leaf": ((1, None), (1, 2)),
    "equal objects": (Box(1, Config(1)), Box(1, Config(1))),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_static_data_is_recognised(name):
    """Made anew around the same objects, a treedef is recognised."""
    assert likeness(structure(SAME[name]())) == structure(SAME[name]())


@pytest.mark.parametrize("name", OTHER)
def test_other_static_data_is_not(name):
    """What Python takes for equal is not recognised unless it is the same."""
    one, other = OTHER[name]
    assert not likeness(structure(one)) == structure(other)
    assert not likeness(structure(other)) == structure(one)


@pytest.mark.parametrize(
    ("x", "change"),
    [
        ([1, 2], lambda x: x.append(3)),
        ({"a": [1]}, lambda x: x["a"].append(2)),
        (np.zeros(2), lambda x: x.fill(1)),
        ((1, np.zeros(2)), lambda x: x[1].fill(1)),
        ({1, 2}, lambda x: x.add(3)),
        (Config([1]), lambda x: x.rate.append(2)),
    ],
    ids=["list", "in a dict", "array", "in a tuple", "set", "in a frozen object"],
)
def test_what_is_changed_in_place_is_recognised_no_more(x, change):
    """The same object with other content is another structure."""
    box = Box(1, x)
    like = likeness(structure(box))
    assert like == structure(box)
    change(x)
    assert not like == structure(box)


class Bare:
    """Its metadata is the object itself."""

    def __init__(self, s):
        self.s = s


class Listing:
    """Its metadata is a new tuple at each flatten."""

    def __init__(self, s):
        self.s = s


def register(cls, data):
    """Registers a class that has metadata alone."""
    jax.tree_util.register_pytree_node(
        cls, lambda x: ((), data(x)), lambda s, _: cls(s)
    )


register(Bare, lambda x: x.s)
register(Listing, lambda x: (*x.s, 0))


def twice(x):
    """The likeness of a value that was flattened twice."""
    return likeness(structure(x), structure(x))


def test_tuples_of_the_user():
    """A tuple that is the user's own is told from one of another class."""
    s = (1, "a")
    assert twice(Bare(s)) == structure(Bare(s))
    assert not twice(Bare(s)) == structure(Bare(Pair(1, "a")))
    assert not twice(Bare(Pair(1, "a"))) == structure(Bare(s))


def test_tuples_that_a_class_makes():
    """Their items count; the tuples are made anew at each flatten."""
    assert twice(Listing([1, "a"])) == structure(Listing((1, "a")))
    assert not twice(Listing([1, "a"])) == structure(Listing([True, "a"]))
    assert not twice(Listing([1, "a"])) == structure(Listing([1]))


def test_nothing_of_the_user_is_compared():
    """No `__eq__` is called, be the objects the same or not."""

    class Loud:
        def __eq__(self, other):
            raise AssertionError

        def __hash__(self):
            return 0

    one, other = Box(1, Loud()), Box(1, Loud())
    like = likeness(structure(one))
    assert like == structure(one)
    assert not like == structure(other)


def test_what_has_no_key_has_no_likeness():
    """An object that cannot be hashed is refused here too."""

    class Unhashable:
        __hash__ = None

    with pytest.raises(Uncomparable, match="cannot be hashed"):
        likeness(structure(Box(1, Unhashable())))
