"""Keys of static data are equal only for equal content of equal types."""

import collections
import dataclasses
import decimal
import enum
import fractions
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from attrs import define, frozen
from flax import struct
from flax.core import FrozenDict

from staged_axes._structure.content import Uncomparable, content


class Mode(str, enum.Enum):
    """A string for Python, and more than a string."""

    FAST = "fast"


class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()


class Tagged(list):
    """A list with an attribute."""

    def __init__(self, items, tag):
        super().__init__(items)
        self.tag = tag


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: object = None


@dataclasses.dataclass
class Plain:
    a: object


@frozen
class Attrs:
    a: object


@define
class Loose:
    a: object


class Forgetful:
    """Its `__eq__` forgets the field that matters."""

    def __init__(self, gain):
        self.gain = gain

    def __eq__(self, other):
        return isinstance(other, Forgetful)

    def __hash__(self):
        return 0


class Counted:
    """Compared by value, with a count of the comparisons."""

    calls = 0

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        Counted.calls += 1
        return isinstance(other, Counted) and self.value == other.value

    def __hash__(self):
        return 1


@struct.dataclass
class Node:
    x: object


MAKERS = {
    "int": lambda: 1,
    "float": lambda: 1.0,
    "bool": lambda: True,
    "numpy int": lambda: np.int64(1),
    "numpy float": lambda: np.float64(1),
    "numpy bool": lambda: np.bool_(True),
    "fraction": lambda: fractions.Fraction(1),
    "complex": lambda: 1 + 0j,
    "zero": lambda: 0.0,
    "minus zero": lambda: -0.0,
    "complex minus zero": lambda: complex(0.0, -0.0),
    "nan": lambda: float("nan"),
    "decimal": lambda: decimal.Decimal("1.0"),
    "more digits": lambda: decimal.Decimal("1.00"),
    "range": lambda: range(0, 3, 2),
    "equal range": lambda: range(0, 4, 2),
    "slice": lambda: slice(0, 1),
    "bool in a slice": lambda: slice(0, True),
    "none": lambda: None,
    "text": lambda: "fast",
    "enum": lambda: Mode.FAST,
    "numpy text": lambda: np.str_("fast"),
    "bytes": lambda: b"fast",
    "tuple": lambda: (1, 2),
    "float in a tuple": lambda: (1, 2.0),
    "named tuple": lambda: Point(1, 2),
    "list": lambda: [1, 2],
    "tagged list": lambda: Tagged([1, 2], "a"),
    "other tag": lambda: Tagged([1, 2], "b"),
    "deque": lambda: collections.deque([1, 2]),
    "set": lambda: {1, 2},
    "frozen set": lambda: frozenset({1, 2}),
    "dict": lambda: {"a": 1, "b": [2]},
    "bool in a dict": lambda: {"a": True, "b": [2]},
    "other order": lambda: {"b": [2], "a": 1},
    "ordered dict": lambda: collections.OrderedDict(a=1, b=[2]),
    "default dict": lambda: collections.defaultdict(list, a=1, b=[2]),
    "other default": lambda: collections.defaultdict(dict, a=1, b=[2]),
    "flax frozen dict": lambda: FrozenDict(a=1),
    "float in a flax frozen dict": lambda: FrozenDict(a=1.0),
    "array": lambda: np.arange(3),
    "other numbers": lambda: np.arange(1, 4),
    "other dtype": lambda: np.arange(3, dtype=np.int16),
    "other shape": lambda: np.arange(3)[None],
    "text array": lambda: np.array(["a", "b"]),
    "object array": lambda: np.array([1, "b"], dtype=object),
    "jax array": lambda: jnp.arange(3),
    "jax number": lambda: jnp.int32(1),
    "weak jax number": lambda: jax.jit(lambda x: x)(1),
    "key": lambda: jax.random.key(0),
    "other key": lambda: jax.random.key(1),
    "frozen dataclass": lambda: Frozen(1),
    "float in a frozen dataclass": lambda: Frozen(1.0),
    "nested": lambda: Frozen(Frozen(1)),
    "float in a nested one": lambda: Frozen(Frozen(1.0)),
    "array in a frozen dataclass": lambda: Frozen(np.arange(3)),
    "dataclass": lambda: Plain(1),
    "float in a dataclass": lambda: Plain(1.0),
    "attrs": lambda: Attrs(1),
    "float in attrs": lambda: Attrs(1.0),
    "mutable attrs": lambda: Loose([1]),
    "forgetful": lambda: Forgetful(1),
    "forgotten field": lambda: Forgetful(2),
    "by value": lambda: Counted(1),
    "other value": lambda: Counted(2),
    "function": lambda: len,
    "other function": lambda: max,
    "type": lambda: int,
    "dtype": lambda: np.dtype("float32"),
    "scalar type": lambda: jnp.float32,
    "treedef": lambda: jax.tree.structure({"a": 1}),
    "static in a treedef": lambda: jax.tree.structure(eqx.nn.Identity()),
    "flax node": lambda: Node(np.arange(3)),
    "flax node with other numbers": lambda: Node(np.arange(1, 4)),
    "equinox module": lambda: eqx.nn.Linear(2, 3, key=jax.random.key(0)),
}


def test_equal_content_has_one_key():
    """Made twice, each of them has the same key both times."""
    for name, make in MAKERS.items():
        assert content(make())[0] == content(make())[0], name


def test_anything_else_has_another_key():
    """No two of them share a key, however equal Python takes them for."""
    keys = {name: content(make())[0] for name, make in MAKERS.items()}
    same = [(a, b) for a in keys for b in keys if a < b and keys[a] == keys[b]]
    assert same == []


@pytest.mark.parametrize(
    "name",
    ["list", "dict", "set", "array", "dataclass", "mutable attrs"],
)
def test_what_can_change_is_said_to_be(name):
    """Content is stable only where nothing in it can be changed in place."""
    x = MAKERS[name]()
    assert not content(x)[1]
    assert not content((1, (x,)))[1]


@pytest.mark.parametrize("name", ["int", "tuple", "frozen dataclass", "jax array"])
def test_what_cannot_change_is_stable(name):
    """Numbers, tuples, frozen objects and JAX arrays need no second look."""
    assert content(MAKERS[name]())[1]


def test_what_was_changed_in_place_has_another_key():
    """The key is that of the moment."""
    x = {"a": [1, np.zeros(2)]}
    before = content(x)[0]
    x["a"][1][0] = 1
    assert content(x)[0] != before


def test_the_same_object_is_not_asked():
    """Identity goes first: no `__eq__` is called for an object and itself."""
    x = Counted(1)
    Counted.calls = 0
    assert content(x)[0] == content(x)[0]
    assert Counted.calls == 0


def test_one_of_many_is_found_by_one_comparison():
    """Among 100 objects of one class and one hash, attributes tell them apart."""
    table = {content(Counted(i))[0]: i for i in range(100)}
    Counted.calls = 0
    assert table[content(Counted(57))[0]] == 57
    assert Counted.calls == 1


class Unhashable:
    __hash__ = None


class Moody:
    def __eq__(self, other):
        raise RuntimeError

    def __hash__(self):
        return 0


def test_what_has_no_plain_content_is_refused():
    """An object that cannot be hashed, and is no container, gives no key."""
    with pytest.raises(Uncomparable, match="cannot be hashed") as e:
        content([Unhashable()])
    assert e.value.kind == "static-data"
    assert isinstance(e.value.x, Unhashable)


def test_an_eq_that_raises_is_refused():
    """Two objects that cannot be compared are not taken for equal or different."""
    a, b = Moody(), Moody()
    with pytest.raises(Uncomparable, match="__eq__ that raises RuntimeError"):
        assert content(a)[0] == content(b)[0]


def test_what_contains_itself_is_refused():
    """A list that holds itself has no key."""
    x = []
    x.append(x)
    with pytest.raises(Uncomparable, match="contains itself"):
        content(x)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x,
        lambda x: {"a": [x]},
        Frozen,
        Node,
        lambda x: jax.tree_util.Partial(len, x),
    ],
    ids=["bare", "in containers", "in a dataclass", "in a node", "in a Partial"],
)
def test_a_tracer_is_refused(wrap):
    """A tracer gives no key, wherever it hides."""

    def look(x):
        with pytest.raises(Uncomparable, match="tracer") as e:
            content(wrap(x))
        assert e.value.kind == "tracer"
        return x

    jax.jit(look)(1.0)


def test_a_deleted_array_is_refused():
    """An array whose buffer was donated cannot be read."""
    x = jnp.arange(3)
    x.delete()
    with pytest.raises(Uncomparable, match="cannot be read"):
        content(x)


def test_functions_made_anew_differ():
    """A partial is told by identity, as JAX tells it."""
    make = functools.partial(functools.partial, max)
    assert content(make())[0] != content(make())[0]
