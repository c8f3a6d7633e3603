"""A batched function is right whatever changed since the call before."""

import dataclasses
import threading
from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from flax.training.train_state import TrainState

import staged_axes as sa

X = jnp.arange(6.0).reshape(3, 2)


@struct.dataclass
class Body:
    x: object
    label: object = struct.field(pytree_node=False, default=None)


def check(fast, value, expected):
    """Calls twice, so that the second call is one that is known."""
    for _ in range(2):
        np.testing.assert_allclose(fast(value), expected, rtol=1e-6)


# Static data ------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        [1, 1.0, True, np.int32(1), np.float64(1)],
        [0.0, -0.0],
        [(1, (1.0,)), (1.0, (1,)), (1, (1,))],
        [{"n": 1}, {"n": True}],
        [float("nan"), float("inf"), 0.0],
    ],
    ids=["numbers", "zeros", "tuples", "dicts", "not a number"],
)
def test_types_of_statics_count(labels):
    """What Python takes for equal, and a function does not, has its own program."""
    fast = sa.batch(lambda v: v.x + len(repr(v.label)), warn_after=None)
    for _ in range(2):
        for label in labels:
            check(fast, Body(X, label), X + len(repr(label)))


def test_not_a_number_hits():
    """NaN is not equal to itself for Python; here it is the same static."""
    traced = []

    def fn(v):
        traced.append(v.label)
        return v.x

    fast = sa.batch(fn)
    for _ in range(3):
        check(fast, Body(X, float("nan")), X)
    assert len(traced) == 1


@pytest.mark.parametrize(
    ("label", "change", "size"),
    [
        ([1, 2], lambda x: x.append(3), len),
        ({"a": 1}, lambda x: x.update(b=2), len),
        ({1}, lambda x: x.add(2), len),
        (np.ones(2), lambda x: x.fill(4), lambda x: float(x.sum())),
        ({"a": [np.ones(2)]}, lambda x: x["a"].append(1), lambda x: len(x["a"])),
    ],
    ids=["list", "dict", "set", "array", "nested"],
)
def test_a_static_that_is_changed_in_place(label, change, size):
    """The next call sees the change; the old content finds its old program."""
    traced = []

    def fn(v):
        traced.append(1)
        return v.x * size(v.label)

    fast = sa.batch(fn)
    body = Body(X, label)
    check(fast, body, X * size(label))
    change(label)
    check(fast, body, X * size(label))
    assert len(traced) == 2


class Counted:
    """Compared by value, with a count of the comparisons."""

    calls = 0

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        Counted.calls += 1
        return isinstance(other, Counted) and self.value == other.value

    def __hash__(self):
        return 7


def test_variants_in_turn_are_not_compared():
    """100 objects of one class and one hash, in turn: no `__eq__` for a hit."""
    traced = []

    def fn(v):
        traced.append(1)
        return v.x * v.label.value

    fast = sa.batch(fn, warn_after=None)
    bodies = [Body(X, Counted(n)) for n in range(100)]
    for body in bodies:
        fast(body)
    Counted.calls = 0
    for n, body in enumerate(bodies):
        np.testing.assert_array_equal(fast(body), X * n)
    assert Counted.calls == 0
    for n in range(100):
        np.testing.assert_array_equal(fast(Body(X, Counted(n))), X * n)
    assert Counted.calls == 100
    assert len(traced) == 100


def test_an_eq_that_forgets_a_field():
    """Attributes count beside `__eq__`: no wrong number where it forgets one."""

    class Aux:
        def __init__(self, factor):
            self.factor = factor

        def __eq__(self, other):
            return isinstance(other, Aux)

        def __hash__(self):
            return 0

    fast = sa.batch(lambda v: v.x * v.label.factor)
    for factor in (2, 3, 2):
        check(fast, Body(X, Aux(factor)), X * factor)


def test_equal_objects_made_anew_are_one():
    """A wrapper with `__eq__` and `__hash__` by content is found again."""
    traced = []

    class Hashed:
        def __init__(self, table):
            self.table = np.asarray(table)

        def __eq__(self, other):
            return np.array_equal(self.table, other.table)

        def __hash__(self):
            return hash(self.table.tobytes())

    def fn(v):
        traced.append(1)
        return v.x * v.label[0][1].table.sum()

    fast = sa.batch(fn)
    for _ in range(3):
        check(fast, Body(X, (("box", Hashed([1, 2])),)), X * 3)
    check(fast, Body(X, (("box", Hashed([1, 3])),)), X * 4)
    assert len(traced) == 2


def test_each_instance_its_own_object():
    """Objects that are compared by identity: a trace each, one program."""
    fast = sa.batch(lambda v: v.x * 2)
    for _ in range(3):
        check(fast, Body(X, object()), 2 * X)
    info = fast.cache_info()
    assert (info.traces, info.compiles) == (3, 1)


def test_an_array_among_statics_poisons_nothing():
    """An array static, then others of its class, in this and in other functions."""
    for k in (1, 2):
        fast = sa.batch(lambda v, k=k: v.x * k)
        check(fast, Body(X, np.arange(3)), k * X)
        check(fast, Body(X, "good"), k * X)
        check(fast, Body(X, np.arange(3)), k * X)
        check(fast, Body(X, np.arange(1, 4)), k * X)


def test_a_static_that_changes_each_step():
    """A step counter that is read costs a program each, and no more are kept."""
    fast = sa.batch(lambda v: v.x * v.label, max_programs=4, warn_after=None)
    for n in range(20):
        check(fast, Body(X, 1 - n / 100), X * (1 - n / 100))
    assert fast.cache_info().programs == 4


@dataclasses.dataclass(frozen=True)
class Config:
    gain: object


def test_types_inside_a_config_count():
    """A frozen dataclass that holds 1 is not one that holds 1.0."""
    fast = sa.batch(lambda v: v.x.astype(int) * v.label.gain)
    ints = fast(Body(X, Config(1)))
    floats = fast(Body(X, Config(1.0)))
    assert (ints.dtype, floats.dtype) == (jnp.int32, jnp.float32)
    assert fast(Body(X, Config(1))).dtype == jnp.int32


def test_dicts_of_any_kind():
    """Kinds of containers are structures of their own, and all of them work."""
    Pair = namedtuple("Pair", "a b")
    fast = sa.batch(lambda v: sum(jax.tree.leaves(v)))
    for value in ((X, X), [X, X], Pair(X, X), {"a": X, "b": X}, {1: X, 2: X}):
        check(fast, value, 2 * X)
    assert fast.cache_info().structures == 5


def test_keys_that_are_equal():
    """`{1: x}` and `{True: x}` are two structures."""
    fast = sa.batch(lambda v: v[1] * len(repr(next(iter(v)))))
    check(fast, {1: X}, X)
    check(fast, {True: X}, 4 * X)
    check(fast, {1.0: X}, 3 * X)


# Records ----------------------------------------------------------------------


def test_a_record_that_changes_between_calls():
    """The next call follows the record, and what it said before is found again."""
    square = jnp.arange(4.0).reshape(2, 2)
    spec = sa.AxesBuilder(default=0)
    fast = spec.batch(lambda v: v["x"] + v["y"].sum())
    value = {"x": square, "y": square}
    rows, columns = square.sum(1), square.sum(0)
    for _ in range(2):
        check(fast, value, square + rows[:, None])
        spec.y = 1
        check(fast, value, square + columns[:, None])
        spec.y = None
        check(fast, value, square + square.sum())
        del spec.y
    assert fast.cache_info().traces == 3


def test_a_mounted_record_that_changes():
    """What a mounted builder records later counts too."""
    inner = sa.AxesBuilder(default=0)
    spec = sa.AxesBuilder(default=0)
    spec.v = inner
    fast = spec.batch(lambda v: v["v"]["x"] + v["v"]["y"].sum())
    value = {"v": {"x": X, "y": X}}
    check(fast, value, X + X.sum(1)[:, None])
    inner.y = None
    check(fast, value, X + X.sum())


def test_a_record_of_the_output_that_changes():
    """So does a builder for the output."""
    out = sa.AxesBuilder(default=0)
    fast = sa.batch(lambda x: {"x": x}, out_axes=out)
    np.testing.assert_array_equal(fast(X)["x"], X)
    out.x = 1
    np.testing.assert_array_equal(fast(X)["x"], X.T)
    del out.x
    np.testing.assert_array_equal(fast(X)["x"], X)
    assert fast.cache_info().traces == 2


def test_records_that_say_the_same_in_other_words():
    """What counts is what the records come to."""
    traced = []

    def fn(v):
        traced.append(1)
        return v["x"] * v["k"]

    one, other = sa.AxesBuilder(default=0), sa.AxesBuilder(default=None)
    one.k = None
    other.x = 0
    for spec in (one, other):
        check(spec.batch(fn), {"x": X, "k": 2.0}, 2 * X)
    check(sa.batch(fn, in_axes=({"x": 0, "k": None},)), {"x": X, "k": 2.0}, 2 * X)
    assert len(traced) == 1


def test_a_bound_record():
    """`bound.batch` keeps what was said when it was bound."""
    spec = sa.AxesBuilder(default=0)
    value = {"x": X, "y": X}
    bound = spec.bind(value)
    spec.y = None
    check(bound.batch(lambda v: v["x"] + v["y"]), value, 2 * X)


# Transformations --------------------------------------------------------------


def square(v):
    """Something to differentiate."""
    return jnp.sin(v.x) ** 2 * v.label


def test_under_grad():
    """Derivatives go through, for known structures and new ones."""
    fast = sa.batch(square)
    for label in (2.0, 3.0, 2.0):
        grad = jax.grad(lambda x, label=label: fast(Body(x, label)).sum())(X)
        np.testing.assert_allclose(grad, label * np.sin(2 * X), rtol=1e-4, atol=1e-6)
        check(fast, Body(X, label), label * np.sin(X) ** 2)


def test_under_jit_and_vmap():
    """Calls inside of transformations are ordinary traced calls."""
    fast = sa.batch(square)
    many = jnp.stack([X, X + 1])
    expected = 2 * np.sin(many) ** 2
    for _ in range(2):
        out = jax.vmap(lambda x: fast(Body(x, 2)))(many)
        np.testing.assert_allclose(out, expected, rtol=1e-5)
        out = jax.jit(lambda x: fast(Body(x, 2)))(X)
        np.testing.assert_allclose(out, expected[0], rtol=1e-5)
        out = jax.jit(jax.vmap(lambda x: fast(Body(x, 2)), axis_name="outer"))(many)
        np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_under_scan():
    """As a step of a loop, from state to state."""
    fast = sa.batch(lambda v: v.replace(x=v.x * 2))
    out, _ = jax.lax.scan(lambda v, _: (fast(v), None), Body(X, "a"), length=3)
    np.testing.assert_array_equal(out.x, 8 * X)
    assert out.label == "a"
    assert fast.cache_info().traces == 1


def test_second_derivatives_and_forward_mode():
    """`jvp`, `hessian` and `checkpoint` too."""
    fast = sa.batch(lambda x: x**3)
    x = jnp.arange(1.0, 3.0)
    _, tangent = jax.jvp(fast, (x,), (jnp.ones(2),))
    np.testing.assert_allclose(tangent, 3 * x**2, rtol=1e-6)
    hessian = jax.hessian(lambda x: jax.checkpoint(fast)(x).sum())(x)
    np.testing.assert_allclose(hessian, np.diag(6 * x), rtol=1e-6)


def test_a_state_that_goes_round():
    """What it gives can be given to it: one trace, statics and all."""
    traced = []

    def step(v):
        traced.append(1)
        return v.replace(x=v.x + 1)

    fast = sa.batch(step)
    state = Body(X, ("a", [1], np.arange(2)))
    for _ in range(5):
        state = fast(state)
    np.testing.assert_array_equal(state.x, X + 5)
    assert len(traced) == 1


@dataclasses.dataclass
class Loose:
    """It has an `__eq__` and no hash, and can be changed in place."""

    gain: object


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [1], lambda x: x.append(2)),
        (lambda: {"a": [1]}, lambda x: x["a"].append(2)),
        (lambda: np.ones(2), lambda x: x.fill(2)),
    ],
    ids=["list", "nested", "array"],
)
def test_outputs_are_nobody_elses(make, change):
    """To change an output's static data in place changes no later output."""
    fast = sa.batch(lambda v: v.replace(x=v.x + 1))
    given = make()
    for _ in range(3):
        out = fast(Body(X, given))
        assert repr(out.label) == repr(make())
        change(out.label)
    change(given)
    assert repr(fast(Body(X, make())).label) == repr(make())


def test_objects_in_outputs():
    """They are what the function gave; one that was changed is given no more."""
    fast = sa.batch(lambda v: v.replace(x=v.x + 1))
    for _ in range(3):
        given = Loose([1])
        out = fast(Body(X, given))
        assert out.label == Loose([1])
        out.label.gain.append(2)
    assert fast.cache_info().traces == 3


def test_objects_that_equal_only_themselves():
    """A function sees the very objects of the call, as it does without a program."""
    label = Loose(np.ones(2))

    def fn(v):
        # JAX compares the static data of the two.
        return jax.lax.cond(
            v.x.sum() > 0, lambda: v, lambda: v.replace(label=label)
        ).replace(label=str(v.label is label))

    fast = sa.batch(fn)
    for _ in range(2):
        out = fast(Body(X, label))
        np.testing.assert_array_equal(out.x, X)
        assert out.label == "True"


def test_a_train_state():
    """Flax's own container, whose static fields are functions."""
    import optax

    def apply_fn(params, x):
        return params["w"] @ x

    states = [
        TrainState.create(
            apply_fn=apply_fn,
            params={"w": jnp.full((2, 2), float(k))},
            tx=(sgd := optax.sgd(0.1)) if k == 0 else sgd,
        )
        for k in range(3)
    ]
    spec = sa.AxesBuilder(default=0)
    batched = sa.stack(states, spec)
    fast = sa.batch(lambda s, x: s.apply_fn(s.params, x), in_axes=(spec, None))
    x = jnp.ones(2)
    expected = np.stack([apply_fn(s.params, x) for s in states])
    for _ in range(2):
        np.testing.assert_allclose(fast(batched, x), expected)


def test_an_object_that_checks_its_fields():
    """No class is ever built with anything but arrays and tracers in it."""

    @jax.tree_util.register_pytree_node_class
    class Strict:
        def __init__(self, x):
            if not hasattr(x, "shape"):
                raise TypeError
            self.x = x

        def tree_flatten(self):
            return (self.x,), ()

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    fast = sa.batch(lambda v: Strict(v.x * 2))
    for _ in range(2):
        np.testing.assert_array_equal(fast(Strict(X)).x, 2 * X)


def test_records_written_while_others_call():
    """A thread that records and threads that call: every answer is one of the two."""
    spec = sa.AxesBuilder(default=0)
    fast = spec.batch(lambda v: v["x"] + v["y"].sum())
    value = {"x": X, "y": X}
    answers = [np.asarray(X + X.sum()), np.asarray(X + X.sum(1)[:, None])]
    wrong = []
    done = threading.Event()

    def work():
        while not done.is_set():
            out = np.asarray(fast(value))
            if not any(np.array_equal(out, a) for a in answers):
                wrong.append(out)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        spec.y = None
        del spec.y
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    np.testing.assert_array_equal(fast(value), answers[1])


# Functions of the user's that look at values ----------------------------------------


def late_spec(which):
    """A record that asks a function about `b`, and the axis that it gives by value."""
    spec = sa.AxesBuilder(default=0)
    if which == "per_leaf":
        spec.b = sa.per_leaf(lambda leaf: 0 if np.any(np.asarray(leaf)) else None)
    elif which == "from_node":
        spec.b = sa.from_node(lambda node: 0 if np.any(np.asarray(node)) else None)
    else:
        none = sa.optional(None)
        sa.rule(spec, lambda path, leaf: not np.any(np.asarray(leaf)), none)
    return spec


@pytest.mark.parametrize("which", ["per_leaf", "from_node", "rule"])
def test_decisions_by_value(which):
    """They are taken anew at each call, as `sa.vmap` does."""

    def fn(v):
        return v["a"].sum() + v["b"].sum()

    spec = late_spec(which)
    fast = spec.batch(fn)
    ones = {"a": jnp.ones((3, 2)), "b": jnp.ones((3, 3))}
    zeros = {"a": jnp.ones((3, 2)), "b": jnp.zeros((3, 3))}
    for value in (ones, zeros, ones, zeros):
        axes = {"a": 0, "b": 0 if value is ones else None}
        expected = jax.vmap(fn, in_axes=(axes,))(value)
        np.testing.assert_array_equal(fast(value), expected)
        np.testing.assert_array_equal(sa.vmap(fn, spec)(value), expected)
    assert fast.cache_info().traces == 2


# Data that changes ------------------------------------------------------------------


@dataclasses.dataclass(unsafe_hash=True)
class Gain:
    """It has a hash, and can be changed in place all the same."""

    by: int


@pytest.mark.parametrize("way", ["static", "leaf", "field"])
def test_objects_with_a_hash_that_change(way):
    """What such an object holds now is what counts."""
    gain = Gain(2)
    of_field = sa.batch(lambda v: v.x * v.label.by)
    of_leaf = sa.batch(lambda x, c: x * c.by, in_axes=(0, None))
    of_static = sa.batch(lambda x, c: x * c.by, static_argnames="c")
    ways = {
        "field": lambda: of_field(Body(X, gain)),
        "leaf": lambda: of_leaf(X, gain),
        "static": lambda: of_static(X, c=gain),
    }
    for by in (2, 5, 2):
        gain.by = by
        np.testing.assert_array_equal(ways[way](), X * by)


def test_leaves_of_an_output_are_nobody_elses():
    """Leaves that are no arrays, of the user's or made by the function, are copied."""
    labels = np.array(["a", "b"])
    axes = ({"x": 0, "labels": None},)
    fast = sa.batch(lambda v: (v, {"ok"}), axes, out_axes=sa.AUTO)
    for _ in range(2):
        out, made = fast({"x": X, "labels": np.array(["a", "b"])})
        assert out["labels"].tolist() == ["a", "b"]
        assert made == {"ok"}
        out["labels"][0], labels[0] = "z", "z"
        made.add("mine")


# Threads and methods ----------------------------------------------------------------


def test_a_trace_may_wait_for_a_thread():
    """A function that is traced waits for a thread that calls another one first."""
    double = sa.batch(lambda x: 2 * x)

    def fn(x):
        out = []

        def work():
            out.append(double(np.ones(3)).sum())

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        return x * out[0]

    np.testing.assert_array_equal(sa.batch(fn)(X), X * 6)


def test_a_method():
    """In the body of a class it is a method, as any function."""

    class Model:
        gain = 3.0
        pull = sa.batch(lambda self, x: x * self.gain, in_axes={"self": None, "x": 0})

    np.testing.assert_array_equal(Model().pull(X), X * 3)
