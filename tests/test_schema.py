"""What `schema` reads from the declarations of many kinds of classes."""

# The older ways to write annotations must be understood as well.
# ruff: noqa: UP006, UP007, UP035, UP045

import collections
import dataclasses
import sys
import typing
from collections.abc import Mapping, Sequence
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    List,
    Literal,
    NamedTuple,
    NewType,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

import attrs
import jax
import pytest
import typing_extensions

import schema_strings
from staged_axes._structure.schema import (
    class_of,
    field_of_subclass,
    fields_of,
    item_type,
)

T = TypeVar("T")
U = TypeVar("U")
B = TypeVar("B", bound="Wheel")


@dataclasses.dataclass
class Wheel:
    drag: float
    radius: jax.Array
    label: str = dataclasses.field(default="", metadata={"static": True})

    @property
    def area(self):
        """Not a field."""
        return self.radius**2


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
    items: List[T]
    both: Optional[T] = None


@dataclasses.dataclass
class WheelBox(Box[Wheel]):
    extra: int = 0


@dataclasses.dataclass
class Pair(Box[List[U]], Generic[T, U]):
    second: T = None


class Point(NamedTuple):
    x: float
    wheel: "Wheel"


class Named(Point):
    """A named tuple with methods, as users write it."""

    def norm(self):
        """Not a field."""
        return self.x


class Params(TypedDict):
    wheel: Wheel
    mass: typing_extensions.NotRequired[float]


def statics(cls):
    """Which fields of a class are static, by name."""
    return {name: field.static for name, field in fields_of(cls).items()}


def types(cls):
    """What the fields of a class are annotated with, by name."""
    return {name: field.type for name, field in fields_of(cls).items()}


def test_plain_dataclass():
    """Metadata `static=True` makes a field static; a property is no field."""
    assert statics(Wheel) == {"drag": False, "radius": False, "label": True}
    assert types(Wheel) == {"drag": float, "radius": jax.Array, "label": str}


def test_registered_dataclass():
    """A static that is named at registration only is reported as not static."""

    @dataclasses.dataclass
    class Registered:
        data: float
        meta: int

    jax.tree_util.register_dataclass(Registered, ["data"], ["meta"])
    assert statics(Registered) == {"data": False, "meta": False}


@pytest.mark.skipif(not hasattr(jax.tree, "static"), reason="this JAX has no static()")
def test_jax_tree_static():
    """JAX's own `jax.tree.static()` is understood."""

    @dataclasses.dataclass
    class WithStatic:
        data: float
        meta: int = jax.tree.static(default=1)

    assert statics(WithStatic) == {"data": False, "meta": True}


def test_flax_dataclass():
    """flax.struct.dataclass marks statics by `pytree_node=False`."""
    struct = pytest.importorskip("flax.struct")

    @struct.dataclass
    class State:
        data: float
        meta: int = struct.field(pytree_node=False, default=1)

    assert statics(State) == {"data": False, "meta": True}


def test_flax_pytree_node():
    """flax.struct.PyTreeNode subclasses are declared without a decorator."""
    struct = pytest.importorskip("flax.struct")

    class State(struct.PyTreeNode):
        data: float
        meta: int = struct.field(pytree_node=False, default=1)

    class More(State):
        other: float = 0.0

    assert statics(State) == {"data": False, "meta": True}
    assert statics(More) == {"data": False, "meta": True, "other": False}


def test_equinox_module():
    """eqx.Module subclasses mark statics by `eqx.field(static=True)`."""
    eqx = pytest.importorskip("equinox")

    class Layer(eqx.Module):
        w: jax.Array
        size: int = eqx.field(static=True)
        b: jax.Array = eqx.field(init=False)

        def __init__(self, size):
            self.w = self.b = jax.numpy.ones(size)
            self.size = size

    class Deep(Layer):
        inner: Layer

    assert statics(Layer) == {"w": False, "size": True, "b": False}
    assert list(fields_of(Deep)) == ["w", "size", "b", "inner"]


def test_chex_dataclass():
    """chex.dataclass is read as the dataclass that it is."""
    chex = pytest.importorskip("chex")

    @chex.dataclass
    class State:
        data: float
        other: int = 2

    assert statics(State) == {"data": False, "other": False}


@pytest.mark.parametrize("slots", [True, False], ids=["slots", "dict"])
def test_attrs_class(slots):
    """An attrs class may use either word in its metadata."""

    @attrs.frozen(slots=slots)
    class State:
        data: float
        a: int = attrs.field(default=1, metadata={"static": True})
        b: int = attrs.field(default=1, metadata={"pytree_node": False})
        c: int = attrs.field(default=1, metadata={"pytree_node": True})
        counter: ClassVar[int] = 0

    assert statics(State) == {"data": False, "a": True, "b": True, "c": False}


def test_attrs_inheritance_and_missing_annotations():
    """Fields of attrs are inherited, and one without an annotation has no type."""

    @attrs.define
    class Base:
        a: int

    @attrs.define
    class Child(Base):
        b: float

    @attrs.define
    class Bare:
        c = attrs.field()

    assert types(Child) == {"a": int, "b": float}
    assert types(Bare) == {"c": None}


@pytest.mark.parametrize("cls", [Point, Named], ids=["itself", "subclass"])
def test_named_tuple(cls):
    """A typing.NamedTuple and its subclasses have their entries as fields."""
    assert types(cls) == {"x": float, "wheel": Wheel}
    assert statics(cls) == {"x": False, "wheel": False}


def test_collections_namedtuple():
    """A collections.namedtuple has fields whose type is not known."""
    assert types(collections.namedtuple("P", "a b")) == {"a": None, "b": None}


def test_typed_dict():
    """A TypedDict has its keys as fields, required or not."""
    assert list(fields_of(Params)) == ["wheel", "mass"]
    assert [class_of(t) for t in types(Params).values()] == [Wheel, float]


def test_special_dataclass_fields():
    """InitVar and ClassVar are no fields; kw_only and init=False ones are."""

    @dataclasses.dataclass
    class Special:
        a: int
        init: dataclasses.InitVar[int]
        shared: ClassVar[int] = 3
        _: dataclasses.KW_ONLY
        b: int = 1
        c: int = dataclasses.field(init=False, default=2)

    assert list(fields_of(Special)) == ["a", "b", "c"]


def test_inheritance_keeps_order_and_overrides():
    """A redeclared field takes the newer declaration at the older place."""

    @dataclasses.dataclass
    class Tyre(Wheel):
        drag: int = dataclasses.field(default=0, metadata={"static": True})
        radius: jax.Array = None
        grip: float = 0.0

    assert statics(Tyre) == {
        "drag": True,
        "radius": False,
        "label": True,
        "grip": False,
    }
    assert types(Tyre)["drag"] is int


@dataclasses.dataclass
class Empty:
    """A base class that declares nothing."""


class Undeclared(Wheel):
    """Inherits a declaration, and may well hold more than it says."""


@pytest.mark.parametrize(
    "cls",
    [
        int,
        dict,
        dict[str, Wheel],
        list[Wheel],
        tuple,
        object,
        jax.Array,
        None,
        Any,
        Union[Wheel, Point],
        "Wheel",
        3,
        Empty,
        Undeclared,
        typing.Protocol,
        Literal["a"],
    ],
    ids=str,
)
def test_no_declared_fields(cls):
    """Where nothing is declared the answer is None, whatever is asked about."""
    assert fields_of(cls) is None


def test_fields_cannot_be_changed():
    """The answer is kept and shared, so it is read-only."""
    with pytest.raises(TypeError, match="does not support item assignment"):
        fields_of(Wheel)["other"] = None


def test_generic_alias():
    """The arguments of a generic class reach the types of its fields."""
    assert types(Box) == {"item": T, "items": List[T], "both": Optional[T]}
    expected = {"item": Wheel, "items": List[Wheel], "both": Optional[Wheel]}
    assert types(Box[Wheel]) == expected
    assert types(Optional[Box[Wheel]]) == expected


def test_generic_bases():
    """The arguments that a class gives to its base reach the inherited fields."""
    assert types(WheelBox)["item"] is Wheel
    assert types(WheelBox)["extra"] is int
    pair = types(Pair[int, str])
    assert (pair["second"], pair["item"]) == (int, List[str])


def test_string_annotations():
    """Strings are resolved in the module of the class that declares the field."""
    node = types(schema_strings.Node)
    assert node["wheel"] is schema_strings.Wheel
    assert node["wheels"] == list[schema_strings.Wheel]
    assert node["own"] == Optional[schema_strings.Wheel]


def test_inherited_string_annotations():
    """An inherited string is looked up where it was written, not where it is used."""

    @dataclasses.dataclass
    class Node(schema_strings.Node):
        more: int = 0

    assert types(Node)["wheel"] is schema_strings.Wheel
    assert types(Node)["more"] is int


def test_recursive_class():
    """A class that names itself can be followed as far as one likes."""
    cls = schema_strings.Node
    for _ in range(5):
        cls = class_of(fields_of(cls)["child"].type)
        assert cls is schema_strings.Node


@pytest.mark.parametrize(
    "make",
    ["local_dataclass", "local_attrs", "local_namedtuple", "local_typed_dict"],
)
def test_local_classes(make):
    """Strings that name local things are None, the others are resolved."""
    cls = getattr(schema_strings, make)()
    found = types(cls)
    assert found["known"] is int
    assert found["unknown"] is None
    assert found["missing"] is None
    assert class_of(found["again"]) is cls


def test_class_attribute_does_not_hide_a_type():
    """A default that has the name of a type is not taken for the type."""
    assert types(schema_strings.Hidden) == {"Wheel": schema_strings.Wheel}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Wheel, Wheel),
        (Optional[Wheel], Wheel),
        (Wheel | None, Wheel),
        (Union[None, Wheel], Wheel),
        (Annotated[Wheel, "note", []], Wheel),
        (Annotated[Optional[Wheel], 1], Wheel),
        (Final[Wheel], Wheel),
        (ClassVar[Wheel], Wheel),
        (typing_extensions.NotRequired[Wheel], Wheel),
        (typing_extensions.ReadOnly[Wheel], Wheel),
        (NewType("NewWheel", Wheel), Wheel),
        (NewType("Newer", NewType("New", Wheel)), Wheel),
        (TypeVar("Bound", bound=Wheel), Wheel),
        (Box[int], Box),
        (list[int], list),
        (List[int], list),
        (dict[str, int], dict),
        (Mapping[str, int], Mapping),
        (tuple[int, ...], tuple),
        (jax.Array, jax.Array),
        (typing_extensions.TypeAliasType("Alias", Optional[Wheel]), Wheel),
        (
            typing_extensions.TypeAliasType("Many", list[T], type_params=(T,))[int],
            list,
        ),
    ],
    ids=str,
)
def test_class_of(annotation, expected):
    """What stands around the one class is taken off."""
    assert class_of(annotation) is expected


@pytest.mark.parametrize(
    "annotation",
    [
        None,
        type(None),
        Any,
        T,
        B,
        TypeVar("Several", int, str),
        Union[int, str],
        int | str | None,
        Optional[Any],
        Literal["a", "b"],
        Final,
        "Wheel",
        typing.ForwardRef("Wheel"),
        3,
        ...,
    ],
    ids=str,
)
def test_class_of_is_unknown(annotation):
    """None where there is no class, several, or a name that was not resolved."""
    assert class_of(annotation) is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax is of Python 3.12")
def test_new_generic_syntax():
    """Classes and aliases with type parameters of their own are followed."""
    space = {"__name__": __name__, "dataclass": dataclasses.dataclass, "Wheel": Wheel}
    exec(
        "type Wheels[K] = dict[K, Wheel]\n"
        "type Broken = missing.name\n"
        "@dataclass\n"
        "class New[K]:\n"
        "    item: K\n"
        "    text: 'list[K]'\n",
        space,
    )
    assert types(space["New"][Wheel]) == {"item": Wheel, "text": list[Wheel]}
    assert item_type(space["Wheels"][str], "a") is Wheel
    assert class_of(space["Broken"]) is None


class Registry(dict[str, Wheel]):
    """A container by inheritance."""


class Stack(List[T]):
    """A generic container by inheritance."""


@pytest.mark.parametrize(
    ("annotation", "key", "expected"),
    [
        (list[Wheel], 0, Wheel),
        (list[Wheel], slice(None), Wheel),
        (list[Wheel], None, Wheel),
        (List[Wheel], -1, Wheel),
        (Sequence[Wheel], 3, Wheel),
        (collections.deque[Wheel], 3, Wheel),
        (Optional[list[Wheel]], 0, Wheel),
        (tuple[Wheel, ...], 7, Wheel),
        (tuple[Wheel, ...], None, Wheel),
        (tuple[int, Wheel], 1, Wheel),
        (tuple[int, Wheel], -1, Wheel),
        (tuple[int, Wheel], 2, None),
        (tuple[int, Wheel], -3, None),
        (tuple[int, Wheel], slice(None), None),
        (tuple[int, Wheel], slice(1, None), Wheel),
        (tuple[Wheel, Wheel], None, Wheel),
        (tuple[Wheel, Wheel], slice(5, None), None),
        (dict[str, Wheel], "a", Wheel),
        (dict[int, Wheel], 3, Wheel),
        (dict[str, Wheel], slice(None), Wheel),
        (Mapping[str, Wheel], "a", Wheel),
        (collections.OrderedDict[str, Wheel], "a", Wheel),
        (collections.defaultdict[str, Wheel], "a", Wheel),
        (Params, "wheel", Wheel),
        (Params, "other", None),
        (Params, None, None),
        (Point, 1, Wheel),
        (Point, "wheel", Wheel),
        (Point, -2, float),
        (Point, 2, None),
        (Point, slice(0, 1), float),
        (Wheel, "drag", float),
        (Wheel, 0, None),
        (Box[Wheel], "item", Wheel),
        (Registry, "a", Wheel),
        (Stack[Wheel], 0, Wheel),
        (Stack[Wheel], None, Wheel),
    ],
    ids=str,
)
def test_item_type(annotation, key, expected):
    """The item of a container is found by key, index or slice."""
    assert item_type(annotation, key) == expected


@pytest.mark.parametrize(
    ("annotation", "key"),
    [
        (list, 0),
        (dict, "a"),
        (tuple, 0),
        (tuple[()], 0),
        (list[Wheel], "a"),
        (set[Wheel], 0),
        (str, 0),
        (jax.Array, 0),
        (collections.Counter[str], "a"),
        (Union[list[int], dict[str, int]], 0),
        (Any, 0),
        (None, None),
        ("list[Wheel]", 0),
        (int, None),
    ],
    ids=str,
)
def test_item_type_is_unknown(annotation, key):
    """None where the annotation does not say what an item is."""
    assert item_type(annotation, key) is None


def test_item_of_frozen_dict():
    """The FrozenDict of flax is a mapping like any other."""
    core = pytest.importorskip("flax.core")
    assert item_type(core.FrozenDict[str, Wheel], "a") is Wheel


def test_item_of_a_dataclass_with_one_type():
    """Every child of a class whose fields agree is known; its statics do not count."""

    @dataclasses.dataclass
    class Wheels:
        front: Wheel
        rear: Wheel
        label: str = dataclasses.field(default="", metadata={"static": True})

    assert item_type(Wheels, None) is Wheel


def test_jaxtyping_annotations():
    """Array annotations of jaxtyping do no harm."""
    jaxtyping = pytest.importorskip("jaxtyping")
    annotation = jaxtyping.Float[jax.Array, "n m"]

    @dataclasses.dataclass
    class State:
        x: annotation
        y: jaxtyping.PyTree[annotation]

    assert list(types(State)) == ["x", "y"]
    assert fields_of(fields_of(State)["x"].type) is None
    assert item_type(fields_of(State)["y"].type, "a") is None


def test_a_field_of_a_known_subclass_is_found_and_no_other():
    """What a subclass of a subclass declares is found; what none declares is not."""

    @dataclasses.dataclass
    class Base:
        q: int

    @dataclasses.dataclass
    class Middle(Base):
        qd: int

    @dataclasses.dataclass
    class Deep(Middle):
        qpos: int = dataclasses.field(metadata={"static": True})

    assert not field_of_subclass(Base, "qd").static
    assert field_of_subclass(Base, "qpos").static
    assert field_of_subclass(Base, "mass") is None
    assert Deep.__mro__[2] is Base
