"""What people ran into with `jax.vmap` in the issues of many projects, each once more.

Every case has a value as those that were reported, what somebody decided about it, and
the axes that this comes to; the expected result is a loop over the examples.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
import pytest
from attrs import field, frozen
from flax import struct
from flax.core import FrozenDict

import staged_axes as sa
from any_oracle import assert_close, flatten, loop
from any_trees import Nested, Wheel


@struct.dataclass
class Tyre:
    grip: Any
    wear: Any
    maker: str = struct.field(pytree_node=False, default="?")


@struct.dataclass
class Car:
    mass: Any
    tyre: Tyre
    doors: int = struct.field(pytree_node=False, default=0)


@struct.dataclass
class Coded:
    bits: Any
    scale: Any
    shape: tuple = struct.field(pytree_node=False, default=())


class Tables:
    """A model whose static data is an array, kept as bytes."""

    def __init__(self, mass, table):
        self.mass, self.table = mass, table


jtu.register_pytree_with_keys(
    Tables,
    lambda t: (
        [(jtu.GetAttrKey("mass"), t.mass)],
        (t.table.tobytes(), t.table.dtype.str),
    ),
    lambda aux, xs: Tables(*xs, np.frombuffer(*aux)),
)


class Checked:
    """A class that checks the shapes it is given."""

    def __init__(self, low, high):
        if np.shape(low) != np.shape(high):
            message = "low and high differ in shape"
            raise TypeError(message)
        self.low, self.high = low, high


jtu.register_pytree_with_keys(
    Checked,
    lambda c: (
        [(jtu.GetAttrKey("low"), c.low), (jtu.GetAttrKey("high"), c.high)],
        None,
    ),
    lambda _, xs: Checked(*xs),
)


class Padded:
    """A class with array work in its constructor."""

    def __init__(self, x):
        self.x = jnp.broadcast_to(x, (2, *jnp.shape(x)[-1:]))


jtu.register_pytree_with_keys(
    Padded,
    lambda p: ([(jtu.GetAttrKey("x"), p.x)], None),
    lambda _, xs: _padded(*xs),
)


def _padded(x):
    made = object.__new__(Padded)
    made.x = x
    return made


class Net(eqx.Module):
    weight: Any
    act: Any
    slope: Any
    name: Any


@frozen
class Case:
    """A value, what is decided about it, and what that comes to."""

    value: Any
    decisions: dict[str, int | None]
    axes: list[int | None]
    fn: Callable[[Any], Any]
    default: int | None = 0
    out_axis: int = 0
    size: int = 3
    out: dict[str, int | None] = field(factory=dict)


R = jnp.arange(6.0).reshape(3, 2)
S = jnp.array([2.0, 5.0])

CASES = {
    "statics on two levels": Case(
        Car(R, Tyre(R + 1, S, "acme"), doors=5),
        {"tyre.wear": None},
        [0, 0, None],
        lambda c: (c.mass * c.tyre.grip).sum() * c.doors + len(c.tyre.maker),
    ),
    "static data is a treedef": Case(
        Nested(R, S), {"b": None}, [0, None], lambda n: n.a * n.b
    ),
    "static data is an array": Case(
        Tables(R, np.arange(4.0)),
        {"mass": 0},
        [0],
        lambda t: t.mass.sum() + t.table.sum(),
        default=None,
    ),
    "one field deep inside": Case(
        {"links": [Car(S, Tyre(R, S)), Car(S, Tyre(S, S))]},
        {"links[0].tyre.grip": 0},
        [None, 0, None, None, None, None],
        lambda v: v["links"][0].tyre.grip * v["links"][1].mass,
        default=None,
    ),
    "leaves that are no arrays": Case(
        Net(R, jax.nn.relu, 0.5, "wind"),
        {"act": None, "slope": None, "name": None},
        [0, None, None, None],
        lambda n: n.act(n.weight - 2).sum() * n.slope + len(n.name),
    ),
    "a shared counter": Case(
        {"params": R, "step": jnp.array(7)},
        {"step": None},
        [0, None],
        lambda s: s["params"].sum() + s["step"],
    ),
    "a list where there is a tuple": Case(
        (R, (S, [R])), {"[1][0]": None}, [0, None, 0], lambda v: v[0] * v[1][0]
    ),
    "a dict where there is a FrozenDict": Case(
        FrozenDict({"dense": {"kernel": R, "bias": S}}),
        {"dense['bias']": None},
        [None, 0],
        lambda p: p["dense"]["kernel"] + p["dense"]["bias"],
    ),
    "a class that checks": Case(
        Checked(R, R + 1), {}, [0, 0], lambda c: (c.high - c.low).sum()
    ),
    "keys like any other leaf": Case(
        {"rng": jax.random.split(jax.random.key(0), 3), "x": R},
        {},
        [0, 0],
        lambda s: s["x"] + jax.random.uniform(s["rng"], (2,)),
    ),
    "a negative output axis": Case(
        jnp.arange(24.0).reshape(3, 2, 4), {}, [0], lambda x: x * 2, out_axis=-1
    ),
}


def recorded(decisions, default):
    """A builder with the decisions of a case."""
    spec = sa.AxesBuilder(default=default)
    for path, axis in decisions.items():
        sa.record(spec, path, axis)
    return spec


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    """The record made early gives what the loop gives."""
    case = CASES[name]
    assert len(flatten(case.value)[0]) == len(case.axes)
    spec = recorded(case.decisions, case.default)
    got = sa.vmap(case.fn, in_axes=(spec,), out_axes=case.out_axis)(case.value)
    assert_close(got, loop(case.fn, case.value, case.axes, 3, case.out_axis))


def test_an_output_with_static_data_that_nobody_knew():
    """Output axes by path, whatever the static data of the output turns out to be."""

    def fn(x):
        return Coded(jnp.round(x * 2), x.max(), tuple(x.shape))

    out = recorded({"bits": 1}, 0)
    got = sa.vmap(fn, out_axes=out)(R)
    rows = [fn(row) for row in R]
    np.testing.assert_array_equal(got.bits, np.stack([r.bits for r in rows], axis=1))
    np.testing.assert_array_equal(got.scale, np.stack([r.scale for r in rows]))
    assert got.shape == (2,)


def test_a_class_that_is_built_inside():
    """It comes back with its axes by path, and is never built with ints."""
    got = sa.vmap(Padded, out_axes=recorded({"x": 1}, 0))(R)
    np.testing.assert_array_equal(
        got.x, np.stack([np.broadcast_to(row, (2, 2)) for row in np.asarray(R)], 1)
    )


def test_only_what_varies_is_batched():
    """Shared layers come back once, without a word about the output's structure."""
    spec = recorded({"head": 0}, None)
    value = {"head": R, "trunk": S}
    got = sa.vmap(lambda v: v, in_axes=(spec,), out_axes=sa.AUTO)(value)
    np.testing.assert_array_equal(got["head"], R)
    assert got["trunk"] is S


def test_a_scalar_deep_inside_is_named():
    """One leaf without the axis: its path, its shape, and how to share it."""
    value = {"opt": [Wheel(R, jnp.array(7))]}
    with pytest.raises(sa.BindError, match="1 leaf does not have the axis") as e:
        sa.vmap(lambda v: v)(value)
    (problem,) = e.value.problems
    assert problem.path == "v['opt'][0].drag"
    assert (problem.shape, problem.axis) == ((), 0)
    assert "None" in str(e.value)


def test_a_lone_key_is_named():
    """A key that nobody split is a scalar, and is found where it is mapped."""
    with pytest.raises(sa.BindError, match="does not have the axis") as e:
        sa.AxesBuilder().bind({"rng": jax.random.key(0), "x": R})
    assert e.value.problems[0].path == "value['rng']"


def test_the_argument_without_an_entry_is_named():
    """The error of a wrong number of entries tells which argument is left out."""

    def score(mean, cov, scale):
        return mean * scale + cov

    with pytest.raises(sa.BindError, match="2 entries for 3 positional") as e:
        sa.vmap(score, in_axes=(0, 0))(R, R, S)
    assert [p.path for p in e.value.problems] == ["scale"]


def test_two_axes_at_once():
    """They are refused; two maps do it."""
    x = jnp.arange(9.0).reshape(3, 3)
    with pytest.raises(sa.BindError, match="4 decisions point at something") as e:
        sa.vmap(jnp.add, in_axes=((0, 1), (0, 1)))(x, -x)
    assert sum(p.kind == "unknown" for p in e.value.problems) == 4
    got = sa.vmap(sa.vmap(jnp.add))(x, -2 * x)
    np.testing.assert_array_equal(got, -np.asarray(x))


def test_shared_weights_by_keyword():
    """A keyword argument has its own axis; with equal sizes nothing is silent."""
    x, weights = jnp.arange(4.0).reshape(2, 2), jnp.array([1.0, 10.0])

    def fn(x, weights):
        return (x * weights).sum()

    got = sa.vmap(fn, in_axes={"x": 0, "weights": None})(x, weights=weights)
    np.testing.assert_array_equal(got, [float(row @ weights) for row in x])


def test_everything_shared():
    """The decisions that led to it are listed, and the two ways out."""
    spec = recorded({"mass": None}, None)
    with pytest.raises(sa.BindError, match="no leaf is mapped") as e:
        spec.bind(Car(R, Tyre(R, S)))
    assert len(e.value.problems) == 2
    assert "axis_size" in str(e.value)
    assert "misspelt" in str(e.value)


def test_an_output_that_is_not_there():
    """More output axes than outputs: the place is named."""
    with pytest.raises(sa.BatchError, match="do not fit the output") as e:
        sa.vmap(lambda x: (x, x), out_axes=recorded({"[2]": 1}, 0))(R)
    assert "[2]" in e.value.problems[0].path


def test_a_module_made_under_a_map_holds_a_tracer():
    """A static field with a tracer is named at once."""

    class Inner(eqx.Module):
        w: Any

    found = []

    def fn(x):
        value = Wheel(R, R, label=Inner(x))
        with pytest.raises(sa.BindError, match="static field holds a tracer") as e:
            sa.AxesBuilder().bind(value)
        found.append(e.value.problems[0].path)
        return x

    jax.vmap(fn)(R)
    assert found == ["value.label"]


def test_a_field_that_became_a_leaf():
    """A dtype among the leaves is named with its type, and shared by None."""
    value = {"matrix": R, "dtype": np.dtype("float32")}
    with pytest.raises(sa.BindError, match="mapped but is no array") as e:
        sa.AxesBuilder().bind(value)
    (problem,) = e.value.problems
    assert problem.path == "value['dtype']"
    assert "None" in problem.fix


def test_a_batch_that_was_forgotten():
    """A shared field with a batch axis is found by an example of one."""
    spec = recorded({"tyre.grip": 0}, None)
    one = Car(S, Tyre(S, S))
    with pytest.raises(sa.BindError, match="template asks for") as e:
        spec.bind(Car(R, Tyre(R, S)), like=one)
    assert [p.path for p in e.value.problems] == ["value.mass"]
    assert "spec.mass = 0" in str(e.value)


def test_a_list_of_models_is_many_leaves():
    """A list is read as one value; the sizes that differ are told apart."""
    models = [Wheel(jnp.ones(2), jnp.ones(3)) for _ in range(3)]
    with pytest.raises(sa.BindError, match="size") as e:
        sa.vmap(lambda m: m)(models)
    assert {p.kind for p in e.value.problems} == {"size"}


def test_the_environment_stays_clean():
    """A model that is passed as an argument leaves no tracer behind."""
    spec = recorded({"mass": 0}, None)
    first = sa.vmap(lambda c: c.mass * c.tyre.grip, in_axes=(spec,))
    value = Car(R, Tyre(S, S))
    np.testing.assert_array_equal(first(value), np.asarray(R) * np.asarray(S))
    np.testing.assert_array_equal(first(value), np.asarray(R) * np.asarray(S))
