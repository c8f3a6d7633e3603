"""Places: what can be written to them, and that they are no values."""

import collections
import copy
import dataclasses
import importlib.util
import math
import operator
import pickle
import rlcompleter
from typing import Any, Generic, NamedTuple, TypeVar

import attrs
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa

T = TypeVar("T")


class Pair(NamedTuple):
    first: "Wheel"
    second: float


@dataclasses.dataclass
class Wheel:
    radius: float
    drag: float
    label: str = dataclasses.field(default="", metadata={"static": True})


@dataclasses.dataclass
class Car(Generic[T]):
    mass: float
    wheel: Wheel
    spare: "Wheel | None"
    wheels: list[Wheel]
    by_name: dict[str, Wheel]
    pair: Pair
    cargo: T
    free: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


def said(spec):
    """Place and axis of each decision."""
    return [(d.place, d.payload) for d in spec.__record__.own().decisions]


# Writing ------------------------------------------------------------------------


def test_attributes_and_items_name_the_same_places():
    """Each spelling of a place replaces what another one wrote."""
    spec = sa.AxesBuilder(default=None)
    spec.a.b = 0
    spec["a"].b = 1
    spec.a["b"] = 2
    spec["a"]["b"] = 3
    assert said(spec) == [("spec['a']['b']", 3)]


def test_reading_records_nothing():
    """A place can be read, kept, and written to later."""
    spec = sa.AxesBuilder(default=None)
    place = spec.layers[2].w
    assert said(spec) == []
    place.bias = 0
    place[:] = None
    assert said(spec) == [("spec.layers[2].w.bias", 0), ("spec.layers[2].w[:]", None)]


def test_a_write_replaces_what_was_written_at_and_below():
    """Writing to a place is an assignment to all of it."""
    spec = sa.AxesBuilder(default=None)
    spec.a.b.c = 0
    spec.a.b.d = 1
    spec.a.bc = 2
    spec.a.b = None
    assert said(spec) == [("spec.a.bc", 2), ("spec.a.b", None)]


def test_delete():
    """`del` takes back what is at and below a place."""
    spec = sa.AxesBuilder(default=None)
    spec.a.b = 0
    spec.a.c[1] = 1
    spec.d = 2
    del spec.a
    assert said(spec) == [("spec.d", 2)]
    del spec["d"]
    assert said(spec) == []


def test_delete_of_nothing():
    """`del` where nothing was decided says so."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.RecordError, match="no decision of this stage") as e:
        del spec.a.b
    assert [(p.path, p.there) for p in e.value.problems] == [("spec.a.b", "undecided")]


def test_delete_of_what_another_stage_decided():
    """`del` takes back nothing of another stage, unless this one overrides."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        spec.a.b = 0
    with pytest.raises(sa.RecordError, match="no decision of this stage") as e:
        del spec.a
    assert [(p.path, p.stage) for p in e.value.problems] == [("spec.a.b = 0", "first")]
    assert said(spec) == [("spec.a.b", 0)]
    with spec.stage("second", override=True):
        del spec.a
    assert said(spec) == []


@pytest.mark.parametrize("name", ["bind", "stage", "table", "from_tree", "to_json"])
def test_own_names(name):
    """A field that is called as the builder's own methods is reached as an item."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.RecordError, match=f"uses the name '{name}' itself") as e:
        setattr(spec, name, 0)
    assert f"sa.at(spec, '{name}').x = ..." in str(e.value)
    spec[name] = 0
    setattr(spec.below, name, 1)
    setattr(sa.at(spec, name), name, 2)
    assert [axis for _, axis in said(spec)] == [0, 1, 2]


@pytest.mark.parametrize("name", ["_x", "__x", "x_", "_", "shape", "dtype", "at", "T"])
def test_other_names_are_free(name):
    """Private names and names of arrays are places as any other."""
    spec = sa.AxesBuilder(default=None)
    setattr(spec, name, 0)
    assert spec.bind({name: np.ones(3)}).leaf_axes == (0,)


# A place is no value ------------------------------------------------------------

UNARY = {
    "bool": (bool, "used as a truth value"),
    "not": (operator.not_, "used as a truth value"),
    "len": (len, "measured with len()"),
    "iter": (iter, "iterated over"),
    "list": (list, "iterated over"),
    "unpack": (lambda x: [*x], "iterated over"),
    "in": (lambda x: 0 in x, "searched with `in`"),
    "int": (int, "turned into a number"),
    "float": (float, "turned into a number"),
    "complex": (complex, "turned into a number"),
    "index": (operator.index, "turned into a number"),
    "round": (round, "turned into a number"),
    "floor": (math.floor, "turned into a number"),
    "ceil": (math.ceil, "turned into a number"),
    "trunc": (math.trunc, "turned into a number"),
    "neg": (operator.neg, "used in arithmetic"),
    "pos": (operator.pos, "used in arithmetic"),
    "abs": (abs, "used in arithmetic"),
    "invert": (operator.invert, "used in arithmetic"),
    "numpy": (np.asarray, "turned into an array"),
    "numpy function": (np.sin, "turned into an array"),
    "range": (range, "turned into a number"),
    "sorted": (lambda x: sorted([x, x]), "compared"),
}
BINARY = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "@": operator.matmul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "divmod": divmod,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}


@pytest.mark.parametrize(("use", "what"), UNARY.values(), ids=UNARY)
def test_a_place_is_no_value(use, what):
    """Every use as a value says what the place is, and what was done with it."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.RecordError, match=r"spec\.a\.b is a place, not a v") as e:
        use(spec.a.b)
    (problem,) = e.value.problems
    assert (problem.kind, problem.path, problem.asked) == (
        "placeholder",
        "spec.a.b",
        what,
    )
    assert said(spec) == []


@pytest.mark.parametrize("use", BINARY.values(), ids=BINARY)
@pytest.mark.parametrize(
    "other",
    [0, None, 1.0, np.float32(1), np.ones(3), jnp.ones(3)],
    ids=["int", "None", "float", "np scalar", "numpy", "jax"],
)
@pytest.mark.parametrize("swap", [False, True], ids=["left", "right"])
def test_arithmetic_and_comparison_with_an_axis(use, other, swap):
    """Neither side of an operator may be a place."""
    place = sa.AxesBuilder(default=None).a
    pair = (other, place) if swap else (place, other)
    with pytest.raises(sa.RecordError, match="is a place, not a value"):
        use(*pair)


@pytest.mark.parametrize("use", [operator.iadd, operator.imul, operator.ior])
def test_assignment_with_an_operator(use):
    """`spec.x += 1` is refused, and records nothing."""
    spec = sa.AxesBuilder(default=None)
    spec.x = 1
    with pytest.raises(sa.RecordError, match="used in arithmetic"):
        spec.x = use(spec.x, 1)
    assert said(spec) == [("spec.x", 1)]


def test_a_place_is_no_axis():
    """A place on the right of a decision is refused."""
    spec = sa.AxesBuilder(default=None)
    with pytest.raises(sa.RecordError, match=r"spec\.y is a place, not an axis"):
        spec.x = spec.y
    assert said(spec) == []


@pytest.mark.parametrize("use", [iter, lambda x: 0 in x], ids=["iter", "in"])
def test_a_builder_is_no_value(use):
    """A builder says that it is one, and what can be done instead."""
    with pytest.raises(sa.RecordError, match=r"^spec is a builder, not a value") as e:
        use(sa.AxesBuilder())
    assert "Fix: spec.x = 0 decides an axis" in str(e.value)


def test_a_place_is_no_array_for_jax():
    """JAX asks for a dtype first, and meets another place."""
    with pytest.raises(sa.RecordError, match="is a place, not a value"):
        jnp.asarray(sa.AxesBuilder().a.b)


def test_a_place_cannot_be_called():
    """A place is no function, as tools that complete names must know."""
    place = sa.AxesBuilder().x
    assert not callable(place)
    with pytest.raises(TypeError, match="'Placeholder' object is not callable"):
        place(0)


def test_places_compare_with_places():
    """Places of one builder are equal if they are one place, and can be dict keys."""
    spec, other = sa.AxesBuilder(), sa.AxesBuilder()
    assert spec.a.b == spec["a"].b
    assert spec.a != spec.b
    assert spec.a != other.a
    assert len({spec.a, spec["a"], spec.b, other.a}) == 3


def test_a_builder_is_true():
    """`if spec:` is as it is for any object."""
    assert sa.AxesBuilder()
    assert sa.AxesBuilder() != sa.AxesBuilder()


# What Python and its tools ask of every object ----------------------------------


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, "pickle"], ids=str)
def test_copies_of_a_place(copier):
    """A copied place is a place; a shallow copy is of the same builder."""
    spec = sa.AxesBuilder(Car[Wheel], default=None)
    place = spec.cargo
    twin = pickle.loads(pickle.dumps(place)) if copier == "pickle" else copier(place)
    assert repr(twin) == repr(place) == "<place spec.cargo>"
    twin.drag = 0
    assert said(spec) == ([("spec.cargo.drag", 0)] if copier is copy.copy else [])
    with pytest.raises(sa.RecordError, match="Wheel has no field 'x'"):
        twin.x = 0


HOOKS = ["__wrapped__", "__len__", "__array_interface__", "__float__", "__fspath__"]
NOTEBOOK = [
    "_repr_png_",
    "_repr_mimebundle_",
    "_ipython_display_",
    "_ipython_canary_method_should_not_exist_",
    "_ipython_key_completions_",
]


@pytest.mark.parametrize("name", [*HOOKS, *NOTEBOOK])
def test_hooks_are_no_places(name):
    """Names that Python or a notebook asks for are absent, as on any object."""
    spec = sa.AxesBuilder()
    assert not hasattr(spec, name)
    assert name in ("__len__", "__float__") or not hasattr(spec.a, name)


def test_dir_of_an_untyped_place():
    """`dir` knows the names that were written below a place, and the methods."""
    spec = sa.AxesBuilder(default=None)
    spec.wheel.drag = 0
    spec.wheel["size"].x = 0
    spec.wheel[0] = 0
    spec.mass = None
    names = set(dir(spec))
    assert {"wheel", "mass", "bind", "stage"} <= names
    assert not names & {"drag", "size", "__record__x"}
    assert {n for n in dir(spec.wheel) if not n.startswith("_")} == {"drag", "size"}


def test_dir_of_a_typed_place():
    """`dir` knows the fields of the class, but not its static ones."""
    spec = sa.AxesBuilder(Car)
    assert {"mass", "wheel", "cargo"} <= set(dir(spec))
    assert "name" not in dir(spec)
    assert {n for n in dir(spec.spare) if not n.startswith("_")} == {"radius", "drag"}


def test_completion_in_python():
    """Python's own prompt completes the names of fields."""
    completer = rlcompleter.Completer({"spec": sa.AxesBuilder(Car)})
    found = [text.rstrip("(") for text in completer.attr_matches("spec.whe")]
    assert found == ["spec.wheel", "spec.wheels"]


@pytest.mark.skipif(
    importlib.util.find_spec("IPython") is None, reason="IPython is not installed"
)
def test_completion_in_ipython():
    """IPython completes the names of fields."""
    from IPython.core.completer import IPCompleter, provisionalcompleter

    completer = IPCompleter(namespace={"spec": sa.AxesBuilder(Car)}, use_jedi=False)
    with provisionalcompleter():
        found = {c.text.strip(".") for c in completer.completions("spec.whe", 8)}
    assert found == {"wheel", "wheels"}


def test_rich_and_others_may_ask_for_any_name():
    """Tools that ask a typed builder for odd names get their own answer."""
    spec = sa.AxesBuilder(Car)
    assert not hasattr(spec, "some_name_that_nobody_has")
    assert getattr(spec, "nothing", 3) == 3
    assert getattr(spec.wheel, "label", 3) == 3


def test_str_and_repr_of_a_place():
    """A place prints as code."""
    spec = sa.AxesBuilder()
    assert repr(spec.a["b c"][1:2]) == "<place spec.a['b c'][1:2]>"
    assert f"{spec.a}" == "<place spec.a>"


# With a class -------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "mass",
        "['mass']",
        "wheel.drag",
        "wheel['drag']",
        "spare.radius",
        "wheels[3].drag",
        "wheels[:].drag",
        "wheels[1:].drag",
        "by_name['front'].drag",
        "by_name.front.drag",
        "by_name[:].drag",
        "pair.first.drag",
        "pair[0].drag",
        "pair[-1]",
        "cargo.anything",
        "free.anything[3].at.all",
    ],
)
def test_known_names(path):
    """Every place that the class has can be written to."""
    spec = sa.AxesBuilder(Car, default=None)
    sa.record(spec, path, 0)
    assert len(said(spec)) == 1


@pytest.mark.parametrize(
    ("path", "text", "fix"),
    [
        ("mas", "Car has no field 'mas'", "did you mean  spec.mass ?"),
        ("whel.drag", "Car has no field 'whel'", "did you mean  spec.wheel ?"),
        ("wheel.darg", "Wheel has no field 'darg'", "did you mean  spec.wheel.drag ?"),
        ("wheel['darg']", "Wheel has no field", "did you mean  spec.wheel['drag'] ?"),
        ("spare.darg", "Wheel has no field", "did you mean  spec.spare.drag ?"),
        ("wheels[2].darg", "Wheel has no", "did you mean  spec.wheels[2].drag ?"),
        ("wheels[:].darg", "Wheel has no", "did you mean  spec.wheels[:].drag ?"),
        (
            "by_name['a'].darg",
            "Wheel has no",
            "did you mean  spec.by_name['a'].drag ?",
        ),
        ("pair.frist", "Pair has no field", "did you mean  spec.pair.first ?"),
        ("pair[0].darg", "Wheel has no", "did you mean  spec.pair[0].drag ?"),
        ("qqq", "Car has no field 'qqq'", "check the name"),
    ],
)
def test_unknown_names(path, text, fix):
    """A name that the class does not have is refused where it is written."""
    spec = sa.AxesBuilder(Car, default=None)
    with pytest.raises(TypeError, match=text) as e:
        sa.record(spec, path, 0)
    assert isinstance(e.value, AttributeError)
    assert str(e.value).endswith(f"Fix: {fix}")
    assert [p.kind for p in e.value.problems] == ["unknown"]
    assert said(spec) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("name", "Car.name is a static field"),
        ("['name']", "Car.name is a static field"),
        ("wheel.label", "Wheel.label is a static field"),
        ("wheels[:].label", "Wheel.label is a static field"),
        ("pair.first.label", "Wheel.label is a static field"),
    ],
)
def test_static_names(path, text):
    """A static field is refused where it is written, and called what it is."""
    spec = sa.AxesBuilder(Car, default=None)
    with pytest.raises(TypeError, match=text) as e:
        sa.record(spec, path, 0)
    assert [p.kind for p in e.value.problems] == ["static"]
    assert said(spec) == []


def make_flax():
    """A class of flax.struct."""
    struct = pytest.importorskip("flax.struct")

    @struct.dataclass
    class Wheel:
        drag: jax.Array
        label: str = struct.field(pytree_node=False)

    return Wheel


def make_equinox():
    """A class of equinox."""
    eqx = pytest.importorskip("equinox")

    class Wheel(eqx.Module):
        drag: jax.Array
        label: str = eqx.field(static=True)

    return Wheel


def make_attrs():
    """A class of attrs."""

    @attrs.define
    class Wheel:
        drag: Any
        label: str = attrs.field(default="", metadata={"static": True})

    return Wheel


def make_registered():
    """A registered dataclass."""

    @dataclasses.dataclass
    class Wheel:
        drag: Any
        label: str = dataclasses.field(default="", metadata={"static": True})

    return Wheel


MAKERS = [make_flax, make_equinox, make_attrs, make_registered]


@pytest.mark.parametrize("make", MAKERS)
def test_classes_of_every_library(make):
    """Fields and static fields are known for the classes of each library."""
    spec = sa.AxesBuilder(make(), default=None)
    spec.drag = 0
    with pytest.raises(sa.RecordError, match="Wheel has no field 'darg'"):
        spec.darg = 0
    with pytest.raises(sa.RecordError, match=r"Wheel\.label is a static field"):
        spec.label = 0
    assert said(spec) == [("spec.drag", 0)]


def test_a_class_with_many_fields():
    """Of many fields a few are shown, those like the name first."""
    fields = [f"field_{i}" for i in range(300)]
    spec = sa.AxesBuilder(dataclasses.make_dataclass("Model", fields))
    with pytest.raises(sa.RecordError, match="Model has no field") as e:
        spec.feild_299 = 0
    (problem,) = e.value.problems
    assert problem.there.startswith("Model has the fields field_299, ")
    assert problem.there.endswith(" and 294 more")
    assert len(str(e.value)) < 400


def test_containers_take_any_name():
    """A dict has no fields to be checked against."""
    spec = sa.AxesBuilder(dict[str, Wheel], default=None)
    spec.anything.drag = 0
    spec["other"] = 0
    with pytest.raises(sa.RecordError, match="Wheel has no field 'darg'"):
        spec.anything.darg = 0
    named = sa.AxesBuilder(collections.OrderedDict, default=None)
    named.anything.at.all = 0
