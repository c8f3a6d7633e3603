"""Two computations have one key only where JAX would compile the same program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from staged_axes._programs.computation import computation_key


def key(fn, *args):
    """The key of what a function is traced to."""
    return computation_key(jax.jit(fn).trace(*args).jaxpr, len(args))


X = jnp.arange(3.0)
TABLE = jnp.arange(5.0)


def with_own_vjp(scale):
    """A function whose backward rule alone depends on `scale`."""

    @jax.custom_vjp
    def f(x):
        return 2 * x

    f.defvjp(lambda x: (2 * x, None), lambda _, g: (g * scale,))
    return f


def with_own_jvp(scale):
    """A function whose forward derivative alone depends on `scale`."""

    @jax.custom_jvp
    def f(x):
        return 2 * x

    f.defjvp(lambda x, t: (2 * x[0], t[0] * scale))
    return f


def loop(x, n=3):
    """Control flow with jaxprs in it."""
    x = jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
    x, _ = jax.lax.scan(lambda c, _: (c * 2, None), x, None, length=n)
    return jax.lax.while_loop(lambda x: x.sum() < 100, lambda x: x * 2, x)


# Each makes the function anew, so that nothing in the two traces is one object.
ALIKE = {
    "arithmetic": lambda: lambda x: x * 2 + 1,
    "constant in the function": lambda: lambda x: x + np.arange(3.0),
    "constant from outside": lambda: lambda x: x + TABLE[:3],
    "large constant": lambda: lambda x: x + np.arange(3e5).sum(),
    "control flow": lambda: loop,
    "activations": lambda: lambda x: jax.nn.silu(jax.nn.relu(x)),
    "random numbers": lambda: lambda x: x + jax.random.normal(jax.random.key(0), (3,)),
    "own vjp": lambda: with_own_vjp(2),
    "own jvp": lambda: with_own_jvp(2),
    "indexing": lambda: lambda x: x[jnp.array([0, 2])].at[0].set(1),
    "platforms": lambda: (
        lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
    ),
    "searching": lambda: lambda x: jnp.nonzero(x, size=2)[0] + jnp.searchsorted(x, 1.0),
    "nested jit": lambda: jax.jit(jax.jit(jnp.sin)),
    "linear algebra": lambda: lambda x: jnp.linalg.solve(jnp.eye(3) + x, x),
    "rematerialised": lambda: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
    "mapped": lambda: jax.vmap(lambda x: x * jax.nn.relu(x)),
}

UNLIKE = {
    "operation": (lambda x: x * 2, lambda x: x + 2),
    "parameter of a search": (
        lambda x: jnp.nonzero(x, size=2)[0],
        lambda x: jnp.nonzero(x, size=3)[0],
    ),
    "literal": (lambda x: x * 2, lambda x: x * 3),
    "order": (lambda x: (x, 2 * x), lambda x: (2 * x, x)),
    "constant": (lambda x: x + np.arange(3.0), lambda x: x + np.arange(1.0, 4.0)),
    "zero's sign": (
        lambda x: x + np.array([0.0, 0, 0]),
        lambda x: x + np.array([-0.0, 0, 0]),
    ),
    "large constant": (
        lambda x: x + np.arange(300_000)[:, None],
        lambda x: (
            x + np.where(np.arange(300_000) == 150_000, 1, np.arange(300_000))[:, None]
        ),
    ),
    "length of a loop": (lambda x: loop(x, 3), lambda x: loop(x, 4)),
    "branch": (
        lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
        lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.tan, x),
    ),
    "body of a scan": (
        lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, None, length=3),
        lambda x: jax.lax.scan(lambda c, _: (c * 3, None), x, None, length=3),
    ),
    "branch for another platform": (
        lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos),
        lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=jnp.tan),
    ),
    "precision": (
        lambda x: jnp.dot(x, x, precision="highest"),
        lambda x: jnp.dot(x, x, precision="default"),
    ),
    "random implementation": (
        lambda x: x + jax.random.normal(jax.random.key(0), (3,)),
        lambda x: x + jax.random.normal(jax.random.key(0, impl="rbg"), (3,)),
    ),
    "inner jit": (
        jax.jit(jnp.sin),
        jax.jit(jnp.cos),
    ),
    "forward of an own vjp": (with_own_vjp(2), lambda x: with_own_vjp(2)(x) + 1),
    "dtype": (lambda x: x.astype("float16"), lambda x: x.astype("bfloat16")),
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_same_computation_has_one_key(name):
    """Traced twice from functions made anew, the key is the same, and is there."""
    make = ALIKE[name]
    assert key(make(), X) is not None
    assert key(make(), X) == key(make(), X)


@pytest.mark.parametrize("name", UNLIKE)
def test_another_computation_has_another_key(name):
    """What differs in one thing has another key."""
    one, other = UNLIKE[name]
    assert key(one, X) is not None
    assert key(one, X) != key(other, X)


@pytest.mark.parametrize(
    "other",
    [jnp.arange(4.0), jnp.arange(3), jnp.float32(1), 1.0],
    ids=["shape", "dtype", "scalar", "weak type"],
)
def test_the_inputs_are_in_the_key(other):
    """The same function of inputs of other types has another key."""
    assert key(lambda x: x, X) != key(lambda x: x, other)
    assert key(lambda x: x, jnp.float32(1)) != key(lambda x: x, 1.0)


def test_a_setting_of_random_numbers_is_in_the_key():
    """The layout of random bits is not in the operations, but in their context."""

    def noise(x):
        return x + jax.random.uniform(jax.random.key(0), (3,))

    keys = []
    for is_on in (True, False):
        with jax.threefry_partitionable(is_on):
            keys.append(key(noise, X))
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jax.pure_callback(np.sin, x, x),
        lambda x: jax.experimental.io_callback(np.sin, x, x),
        lambda x: (jax.debug.print("{}", x), x)[1],
        lambda x: (jax.debug.callback(lambda _: None, x), x)[1],
        lambda x: jax.lax.scan(
            lambda c, _: (jax.pure_callback(np.sin, c, c), None), x, None, length=2
        ),
    ],
    ids=["pure", "io", "print", "debug", "in a loop"],
)
def test_what_calls_back_has_no_key(fn):
    """A callback to Python may be another one each time."""
    assert key(fn, X) is None


def test_what_closes_over_a_tracer_has_no_key():
    """A constant that is being traced is no constant."""
    keys = []

    def outer(y):
        keys.append(key(lambda x: x + y, X))
        return y

    jax.jit(outer)(1.0)
    assert keys == [None]
