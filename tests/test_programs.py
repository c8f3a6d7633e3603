"""A program that is shared between structures gives what each would get on its own."""

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import staged_axes as sa


@struct.dataclass
class Body:
    x: object
    label: object = struct.field(pytree_node=False, default=None)


X = jnp.arange(6.0).reshape(3, 2)


# JAX 0.4.30 maps callbacks one by one without being asked, and takes no such word.
ASKED = "vmap_method" in inspect.signature(jax.pure_callback).parameters
ONE_BY_ONE = {"vmap_method": "sequential"} if ASKED else {}


def make(fn, **options):
    """A batched function of one `Body`, mapped on axis 0, and nothing warned of."""
    return sa.batch(fn, warn_after=None, **options)


def counts(fast):
    """Traces and compiles so far."""
    info = fast.cache_info()
    return info.traces, info.compiles


def test_an_unread_static_costs_a_trace_and_no_compile():
    """100 labels that the function does not look at: 100 traces, one program."""
    traces = []

    def fn(body):
        traces.append(body.label)
        return jnp.sin(body.x).sum()

    fast = make(fn)
    for i in range(100):
        np.testing.assert_allclose(fast(Body(X, f"{i}")), np.sin(X).sum(1), rtol=1e-6)
    assert len(traces) == 100
    assert counts(fast) == (100, 1)
    assert fast.cache_info().programs == 1


def test_a_static_that_is_read_has_its_own_program():
    """Where the label changes the computation, nothing is shared."""
    fast = make(lambda body: body.x * body.label)
    for n in (2, 3, 2, 3):
        np.testing.assert_array_equal(fast(Body(X, n)), X * n)
    assert counts(fast) == (2, 2)


def test_the_output_has_its_own_statics():
    """The program is shared; what it gives belongs to the structure that asked."""
    fast = make(lambda body: body.replace(x=body.x + 1))
    for label in ("a", "b", "a", "b"):
        out = fast(Body(X, label))
        assert out.label == label
        np.testing.assert_array_equal(out.x, X + 1)
    assert counts(fast) == (2, 1)


def test_the_output_has_its_own_other_leaves():
    """Strings and functions in an output come from the structure's own trace."""
    fast = make(lambda body: {"x": body.x, "label": body.label})
    for label in ("a", "b", "a"):
        assert fast(Body(X, label))["label"] == label
    assert counts(fast) == (2, 1)


def test_another_form_of_output_may_share():
    """A tuple and a list of the same arrays are one computation, put together apart."""
    fast = make(lambda body: [body.x] if body.label else (body.x,))
    assert isinstance(fast(Body(X, True)), list)
    assert isinstance(fast(Body(X, False)), tuple)
    assert isinstance(fast(Body(X, True)), list)
    assert counts(fast) == (2, 1)


def test_shapes_seen_later_are_checked_anew():
    """Two labels that agree for one shape and differ for another do not mix."""

    def fn(body):
        is_odd_one = body.label == "odd" and body.x.shape[0] == 3
        return body.x.sum() * (-1 if is_odd_one else 1)

    fast = make(fn)
    three = jnp.ones((4, 3))
    for label in ("plain", "odd"):
        np.testing.assert_array_equal(fast(Body(X, label)), X.sum(1))
    assert counts(fast) == (2, 1)
    np.testing.assert_array_equal(fast(Body(three, "plain")), three.sum(1))
    np.testing.assert_array_equal(fast(Body(three, "odd")), -three.sum(1))
    np.testing.assert_array_equal(fast(Body(X, "odd")), X.sum(1))


@pytest.mark.parametrize(
    ("one", "other", "type_of_one"),
    [
        (np.float32(2), np.int32(2), ("float32", False)),
        (np.float32(2), 2.0, ("float32", False)),
        (2.0, np.float32(2), ("float32", True)),
        (2, 2.0, ("int32", True)),
        (True, 1, ("bool", False)),
    ],
    ids=["dtype", "weak type", "no weak type", "int and float", "bool and int"],
)
def test_types_seen_later_are_checked_anew(one, other, type_of_one):
    """The type of a shared number decides for one label, and not for the other."""

    def fn(body, gain):
        is_one = (gain.dtype.name, gain.weak_type) == type_of_one
        return body.x * (1 if is_one or body.label == "plain" else 100)

    fast = make(fn, in_axes=(0, None))
    for label in ("plain", "strict"):
        np.testing.assert_array_equal(fast(Body(X, label), one), X)
    np.testing.assert_array_equal(fast(Body(X, "plain"), other), X)
    np.testing.assert_array_equal(fast(Body(X, "strict"), other), 100 * X)


def test_a_wider_type_that_jax_narrows_is_the_same():
    """NumPy's float64 is float32 for JAX, and is served by the same program."""
    fast = make(lambda body: body.x * 2)
    assert fast(Body(np.asarray(X, np.float64))).dtype == jnp.float32
    assert fast(Body(X)).dtype == jnp.float32
    assert counts(fast) == (1, 1)


@pytest.mark.parametrize(
    "context",
    [
        lambda: jax.default_matmul_precision("float32"),
        lambda: jax.numpy_rank_promotion("raise"),
        lambda: jax.threefry_partitionable(not jax.config.jax_threefry_partitionable),
        lambda: jax.numpy_dtype_promotion("strict"),
    ],
    ids=["precision", "rank promotion", "random bits", "promotion"],
)
def test_a_setting_of_jax_has_its_own_program(context):
    """Under another setting the function is traced again, for each label."""

    def fn(body):
        noise = jax.random.uniform(jax.random.key(0), (2,))
        return body.x @ body.x + noise

    fast = make(fn)
    expected = [x @ x + jax.random.uniform(jax.random.key(0), (2,)) for x in X]
    for label in ("a", "b"):
        np.testing.assert_allclose(fast(Body(X, label)), expected, rtol=1e-6)
    with context():
        inside = [x @ x + jax.random.uniform(jax.random.key(0), (2,)) for x in X]
        for _ in range(2):
            for label in ("a", "b"):
                np.testing.assert_allclose(fast(Body(X, label)), inside, rtol=1e-6)
    traces = counts(fast)[0]
    assert traces == 4
    for label in ("a", "b"):
        np.testing.assert_allclose(fast(Body(X, label)), expected, rtol=1e-6)
    assert counts(fast)[0] == traces


def test_double_precision_has_its_own_program():
    """`enable_x64` after a call widens the next one, and the other way round."""
    fast = make(lambda body: body.x * 2)
    wide = np.arange(3.0)
    assert fast(Body(wide)).dtype == jnp.float32
    jax.config.update("jax_enable_x64", True)
    try:
        assert fast(Body(wide)).dtype == jnp.float64
    finally:
        jax.config.update("jax_enable_x64", False)
    assert fast(Body(wide)).dtype == jnp.float32


@pytest.mark.parametrize("size", [3, 100_000], ids=["small", "large"])
def test_constants_are_compared_in_full(size):
    """Labels that pick constants differing in one number have two programs."""
    table = {"a": np.zeros(size), "b": np.zeros(size)}
    table["b"][size // 2] = 1
    fast = make(lambda body: body.x.sum() + jnp.asarray(table[body.label]).sum())
    np.testing.assert_array_equal(fast(Body(X, "a")), X.sum(1))
    np.testing.assert_array_equal(fast(Body(X, "b")), X.sum(1) + 1)
    assert counts(fast) == (2, 2)


def test_equal_constants_are_shared():
    """Arrays in static fields that hold the same numbers are one constant."""
    fast = make(lambda body: body.x + jnp.asarray(body.label.table))
    for name in "ab":
        label = Labelled(name, np.ones(2))
        np.testing.assert_array_equal(fast(Body(X, label)), X + 1)
    assert counts(fast) == (2, 1)


@dataclasses.dataclass
class Labelled:
    name: str
    table: object


@pytest.mark.parametrize("use", ["again", "another device", "grad"])
def test_constants_that_are_changed_later(use):
    """What a function closes over may change; another structure is not served that."""
    tables = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}
    fast = make(lambda body: body.x * tables[body.label])
    for label in ("a", "b"):
        np.testing.assert_array_equal(fast(Body(X, label)), X)
    assert counts(fast) == (2, 1)
    tables["a"] += 4
    if use == "another device":
        out = fast(Body(jax.device_put(X, jax.devices()[1]), "b"))
    elif use == "grad":
        out = X * jax.grad(lambda x: fast(Body(x, "b")).sum())(X)
    else:
        out = fast(Body(X, "b"))
    np.testing.assert_array_equal(out, X)


def test_a_constant_that_changes_between_two_structures():
    """The second structure is traced with what is there then."""
    table = np.ones(2, np.float32)
    fast = make(lambda body: body.x * table)
    np.testing.assert_array_equal(fast(Body(X, "a")), X)
    table += 4
    np.testing.assert_array_equal(fast(Body(X, "b")), 5 * X)
    assert counts(fast) == (2, 2)


def test_callbacks_are_not_shared():
    """A callback belongs to the structure that made it."""
    seen = []

    def fn(body):
        def look(x):
            seen.append(body.label)
            return x

        return jax.pure_callback(look, body.x, body.x, **ONE_BY_ONE)

    fast = make(fn)
    for label in ("a", "b"):
        np.testing.assert_array_equal(fast(Body(X, label)), X)
    assert set(seen) == {"a", "b"}
    assert counts(fast) == (2, 2)


def test_effects_are_not_shared(capfd):
    """What is printed is what this structure prints."""

    def fn(body):
        jax.debug.print(f"{body.label}: {{}}", body.x.sum())
        return body.x

    fast = make(fn)
    for label in ("one", "two"):
        jax.block_until_ready(fast(Body(X, label)))
        jax.effects_barrier()
    out = capfd.readouterr().out
    assert out.count("one:") == out.count("two:") == 3
    assert counts(fast) == (2, 2)


def scaled(label):
    """2 x, whose derivative is said to be the label."""

    @jax.custom_vjp
    def f(x):
        return 2 * x

    f.defvjp(lambda x: (2 * x, None), lambda _, g: (g * label,))
    return f


def test_derivatives_are_those_of_the_structure_itself():
    """Labels that differ in a backward rule alone share a program, and no gradient."""
    fast = make(lambda body: scaled(body.label)(body.x))
    for label in (5, 7):
        np.testing.assert_array_equal(fast(Body(X, label)), 2 * X)
    assert counts(fast) == (2, 1)
    for label in (5, 7, 5):
        grad = jax.grad(lambda x, label=label: fast(Body(x, label)).sum())(X)
        np.testing.assert_array_equal(grad, jnp.full_like(X, label))
        np.testing.assert_array_equal(fast(Body(X, label)), 2 * X)
    assert counts(fast)[1] == 1


def test_derivatives_first_and_values_later():
    """The same when the first call is one under `grad`, inside of `jit`."""
    fast = make(lambda body: scaled(body.label)(body.x))
    for label in (5, 7):
        grad = jax.jit(jax.grad(lambda x, label=label: fast(Body(x, label)).sum()))(X)
        np.testing.assert_array_equal(grad, jnp.full_like(X, label))
    for label in (7, 5):
        np.testing.assert_array_equal(fast(Body(X, label)), 2 * X)


def mapped_by(label):
    """The identity, whose rule for `vmap` is said to add the label."""

    @jax.custom_batching.custom_vmap
    def f(x):
        return x

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        return x + label, in_batched[0]

    return f


def test_rules_for_vmap_are_those_of_the_structure_itself():
    """Labels that differ in a rule for an outer `vmap` alone share no mapped call."""
    fast = make(lambda body, y: (body.x, mapped_by(body.label)(y)), in_axes=(0, None))
    y = jnp.zeros(2)
    for label in (5, 7):
        fast(Body(X, label), y)
    many = jnp.zeros((4, 2))
    for label in (5, 7):
        _, out = jax.vmap(lambda y, label=label: fast(Body(X, label), y))(many)
        np.testing.assert_array_equal(out, jnp.full((4, 3, 2), label))


def test_a_function_that_closes_over_a_tracer_is_not_shared():
    """Two labels, two tracers closed over: each call sees its own."""
    cell = []
    fast = make(lambda body: body.x * cell[0])

    def outer(a, b):
        cell[:] = [a]
        one = fast(Body(X, "a"))
        cell[:] = [b]
        return one, fast(Body(X, "b"))

    one, other = jax.jit(outer)(2.0, 3.0)
    np.testing.assert_array_equal(one, 2 * X)
    np.testing.assert_array_equal(other, 3 * X)


def test_donation_is_as_asked():
    """Structures that donate other leaves have programs of their own."""
    fast = sa.batch(lambda a, b: (a.x + 1, b.x + 1), donate_argnums=0, warn_after=None)
    for label in ("a", "b"):
        given, kept = Body(X + 0, label), Body(X + 0, label)
        one, other = fast(given, kept)
        np.testing.assert_array_equal(one, X + 1)
        np.testing.assert_array_equal(other, X + 1)
        assert given.x.is_deleted()
        assert not kept.x.is_deleted()
    assert counts(fast) == (2, 1)


def test_donation_of_other_leaves_is_not_shared():
    """The same computation with another input donated is another program."""

    def fn(pair, label):
        return [x + 1 for x in jax.tree.leaves(pair)]

    fast = sa.batch(fn, donate_argnames="pair", static_argnames="label")
    one, other = X + 0, X + 0
    fast((one, other), label="a")
    assert one.is_deleted()
    assert other.is_deleted()
    three = [X + 0, X + 0]
    fast((three[0],), label=three[1:])
    assert three[0].is_deleted()
    assert not three[1].is_deleted()


def test_other_devices_compile_the_same_computation_anew():
    """Inputs placed elsewhere are JAX's own business: nothing is traced again."""
    devices = jax.devices()
    fast = make(lambda body: jnp.sin(body.x))
    for label in ("a", "b"):
        for device in devices:
            x = jax.device_put(X, device)
            out = fast(Body(x, label))
            assert out.devices() == {device}
            np.testing.assert_allclose(out, np.sin(X), rtol=1e-6)
    assert counts(fast) == (2, 1)


def test_sharded_inputs_stay_sharded():
    """A program that is shared keeps the placement of its inputs."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    n = len(jax.devices())
    x = jax.device_put(jnp.arange(2.0 * n).reshape(n, 2), sharding)
    fast = make(lambda body: body.x * 2)
    for label in ("a", "b"):
        out = fast(Body(x, label))
        assert out.sharding.is_equivalent_to(sharding, 2)
        np.testing.assert_array_equal(out, 2 * x)


def test_caches_that_jax_dropped_are_made_again():
    """`jax.clear_caches` costs a trace, and nothing goes wrong."""
    fast = make(lambda body: body.x * 2)
    for label in ("a", "b"):
        fast(Body(X, label))
    jax.clear_caches()
    for label in ("a", "b", "a"):
        np.testing.assert_array_equal(fast(Body(X, label)), 2 * X)


def test_checks_of_jax_for_leaks_change_nothing():
    """Where JAX keeps no traces, a call is worked out without a program."""
    fast = make(lambda body: body.x * 2)
    with jax.checking_leaks():
        for label in ("a", "b", "a"):
            np.testing.assert_array_equal(fast(Body(X, label)), 2 * X)


def test_no_compiling_where_it_is_turned_off():
    """Inside of `jax.disable_jit` the function sees arrays."""
    seen = []

    def fn(body):
        seen.append(type(body.x))
        return body.x * 2

    fast = make(fn)
    with jax.disable_jit():
        np.testing.assert_array_equal(fast(Body(X)), 2 * X)
    np.testing.assert_array_equal(fast(Body(X)), 2 * X)
    with jax.disable_jit():
        np.testing.assert_array_equal(fast(Body(X)), 2 * X)
    assert len(seen) == 3
