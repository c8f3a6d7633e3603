"""A program that two structures share is right for both, whatever comes later."""

import collections
import gc
import inspect
import math
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import staged_axes as sa
from explicit_loop import fingerprint, number
from tagged import Items, Row, Setting, Single, Tagged, compiles

ENABLE_X64 = (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64
# The only way that JAX 0.4.30 has, which has no name there.
SEQUENTIAL = (
    {"vmap_method": "sequential"}
    if "vmap_method" in inspect.signature(jax.pure_callback).parameters
    else {}
)
ONES = np.ones(4, np.float32)


def shared(fn, *statics, x=ONES, **options):
    """A batched function called with these static data, which shared a program."""
    fast = sa.batch(fn, **options)
    for s in statics:
        fast(Tagged(x, s))
    info = fast.cache_info()
    assert (info.structures, info.programs) == (len(statics), 1)
    return fast


def listed(tree):
    """The values in a tree of arrays."""
    return [np.asarray(x).tolist() for x in jax.tree_util.tree_leaves(tree)]


# Inputs that come later ---------------------------------------------------------------


def weak(n):
    """A weakly typed array of threes."""
    return jnp.broadcast_to(jnp.asarray(3.0), (n,))


LATER = {
    "batch size": (
        np.ones(3, np.float32),
        lambda x: jax.lax.psum(1, "batch") == 3,
    ),
    "shape": (np.ones((4, 2), np.float32), lambda x: x.ndim == 1),
    "dtype": (np.ones(4, np.int32), lambda x: x.dtype == np.int32),
    "low precision": (np.ones(4, jnp.bfloat16), lambda x: x.dtype == jnp.bfloat16),
    "weak type": (weak(4), lambda x: x.weak_type),
    "key": (jax.random.split(jax.random.key(0), 4), lambda x: x.dtype != np.float32),
}


@pytest.mark.parametrize("which", LATER)
@pytest.mark.parametrize("later_first", [0, 1])
def test_static_that_matters_for_later_inputs(which, later_first):
    """What was shared for some inputs is not where a static is read."""
    later, is_read = LATER[which]

    def fn(v):
        return v.s if is_read(v.x) else 0

    fast = shared(fn, 1, 2, 3, axis_name="batch")
    order = [2, 1, 3] if later_first else [1, 2, 3]
    for s in order * 2:
        assert listed(fast(Tagged(later, s))) == [[s] * len(later)]
        assert listed(fast(Tagged(ONES, s))) == [[0] * 4]


@pytest.mark.parametrize(
    "later",
    [
        np.arange(4.0),
        np.arange(4, dtype=np.float32),
        jnp.arange(4.0),
        weak(4),
        np.arange(4, dtype=np.int8),
        np.arange(4) > 1,
        np.arange(5.0),
        np.ones((4, 2), np.float32),
        np.arange(4, dtype=jnp.bfloat16),
    ],
    ids=lambda x: (
        f"{type(x).__name__}-{x.dtype}-{x.shape}-{getattr(x, 'weak_type', '')}"
    ),
)
def test_static_that_never_matters(later):
    """Each later type of input has its own right program, shared or not."""
    fast = shared(lambda v: v.x + 1, "a", "b")
    for s in ("b", "a", "c", "a"):
        result = fast(Tagged(later, s))
        each = [x + 1 for x in jnp.asarray(later)]
        assert (result.dtype, result.weak_type) == (each[0].dtype, each[0].weak_type)
        assert listed(result) == [listed(jnp.stack(each))[0]]


def placed(x, n, names="batch"):
    """An array over `n` devices, by its first axis."""
    mesh = Mesh(np.array(jax.devices()[:n]), ("batch",))
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec("batch")))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_sharding(n):
    """Inputs on other devices give what plain JAX gives, in the same places."""
    fast = shared(lambda v: v.x * 2, 1, 2, x=np.arange(4.0, dtype=np.float32))
    x = placed(np.arange(4, dtype=np.float32), n)
    plain = jax.jit(jax.vmap(lambda x: x * 2))(x)
    for s in (1, 2, 3, 1):
        result = fast(Tagged(x, s))
        assert listed(result) == [[0.0, 2.0, 4.0, 6.0]]
        assert result.sharding.is_equivalent_to(plain.sharding, 1)
        assert fast(Tagged(ONES, s)).devices() == {jax.devices()[0]}


def test_other_device():
    """A program moves to the device of its inputs."""
    fast = shared(lambda v: v.x * 2, 1, 2)
    x = jax.device_put(ONES, jax.devices()[3])
    for s in (2, 1, 3):
        assert fast(Tagged(x, s)).devices() == {jax.devices()[3]}


def test_sharding_by_static():
    """A sharding in the function is part of what is compared."""
    mesh = Mesh(np.array(jax.devices()), ("d",))

    def fn(v):
        spec = NamedSharding(mesh, PartitionSpec(v.s))
        return jax.lax.with_sharding_constraint(v.x + 1, spec)

    fast, x = sa.batch(fn), np.ones((2, 4), np.float32)
    for s in (None, "d", None, "d"):
        plain = jax.jit(jax.vmap(lambda x, s=s: fn(Tagged(x, s))))(x)
        result = fast(Tagged(x, s))
        assert result.sharding.is_equivalent_to(plain.sharding, 2)


# Settings -----------------------------------------------------------------------------

SETTINGS = {
    "enable_x64": lambda: ENABLE_X64(True),
    "default_matmul_precision": lambda: jax.default_matmul_precision("float32"),
    "numpy_rank_promotion": lambda: jax.numpy_rank_promotion("raise"),
    "numpy_dtype_promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "threefry_partitionable": lambda: jax.threefry_partitionable(
        not jax.config.jax_threefry_partitionable
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_that_is_read(name):
    """A function that asks for a setting is traced under each, for each structure."""
    usual = getattr(jax.config, f"jax_{name}")

    def fn(v):
        return v.s if getattr(jax.config, f"jax_{name}") != usual else 0

    fast = shared(fn, 1, 2)
    for s in (2, 1, 3):
        with SETTINGS[name]():
            assert listed(fast(Tagged(ONES, s))) == [[s] * 4]
        assert listed(fast(Tagged(ONES, s))) == [[0] * 4]


@pytest.mark.parametrize("s", [1, 2, 3])
def test_rank_promotion(s):
    """A setting that forbids something forbids it where the program is known."""
    fast = shared(lambda v: v.x + np.ones((2, 2), np.float32), 1, 2, x=np.ones((2, 2)))
    with (
        jax.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="jax_numpy_rank_promotion"),
    ):
        fast(Tagged(np.ones((2, 2)), s))


def test_precision():
    """The precision of a matrix product is that of the call."""
    fast = shared(lambda v: v.x @ v.x, 1, 2, x=np.ones((2, 3, 3), np.float32))
    value = Tagged(np.ones((2, 3, 3), np.float32), 2)
    with jax.default_matmul_precision("float32"):
        assert "HIGHEST" in fast.lower(value).as_text()
    assert "HIGHEST" not in fast.lower(value).as_text()


def test_double_precision():
    """Under x64 the results are double, outside of it single, with one wrapper."""
    fast, x = shared(lambda v: v.x / 3, 1, 2, x=np.ones(4)), np.ones(4)
    for s in (2, 1, 3):
        with ENABLE_X64(True):
            result = fast(Tagged(x, s))
            assert (result.dtype, result.tolist()) == (np.float64, [1 / 3] * 4)
        assert fast(Tagged(x, s)).dtype == np.float32


def test_key_implementation():
    """Keys of other random generators, as leaves and as statics, are not mixed."""
    fast = sa.batch(lambda v: (v.x, jax.random.bits(v.s)))
    for kind in ("threefry2x32", "rbg", "unsafe_rbg", "threefry2x32"):
        keys = jax.random.split(jax.random.key(7, impl=kind), 3)
        one = jax.random.key(1, impl=kind)
        same, bits = fast(Tagged(keys, one))
        assert same.dtype == keys.dtype
        assert listed(bits) == [[int(jax.random.bits(one))] * 3]


def test_generator_for_keys():
    """`jax.jit` does not trace anew for it, and no more does a batched function."""

    def fn(v):
        return jax.random.key_data(jax.random.key(v.x)).shape

    plain = jax.jit(jax.vmap(lambda x: fn(Tagged(x))))
    fast = shared(fn, 1, 2, x=np.arange(3))
    for f in (plain, lambda x: fast(Tagged(x, 2))):
        before = listed(f(np.arange(3)))
        with jax.default_prng_impl("rbg"):
            assert listed(f(np.arange(3))) == before


@pytest.mark.parametrize("name", ["jax_numpy_rank_promotion", "jax_enable_x64"])
def test_setting_for_good(name):
    """A setting that is changed for good counts as one that is changed for a while."""
    before = getattr(jax.config, name)
    later = {"jax_numpy_rank_promotion": "warn", "jax_enable_x64": True}[name]

    def fn(v):
        return v.s if getattr(jax.config, name) == later else 0

    fast = shared(fn, 1, 2)
    jax.config.update(name, later)
    try:
        seen = [listed(fast(Tagged(ONES, s)))[0][0] for s in (1, 2, 3)]
    finally:
        jax.config.update(name, before)
    assert seen == [1, 2, 3]
    assert [listed(fast(Tagged(ONES, s)))[0][0] for s in (1, 2, 3)] == [0, 0, 0]


def test_default_device():
    """The default device of the call counts, for each structure."""
    fast = shared(lambda v: v.x + 1, 1, 2)
    for n in (0, 2):
        with jax.default_device(jax.devices()[n]):
            for s in (2, 1, 3):
                assert fast(Tagged(ONES, s)).devices() == {jax.devices()[n]}


def test_nans():
    """Where JAX looks for NaNs, a shared program finds them, and works afterwards."""
    fast = shared(lambda v: v.x / v.x, 1, 2)
    for s in (2, 1, 3):
        with jax.debug_nans(True):
            with pytest.raises(FloatingPointError, match="nan"):
                fast(Tagged(0 * ONES, s))
            assert listed(fast(Tagged(ONES, s))) == [[1.0] * 4]
        assert str(listed(fast(Tagged(0 * ONES, s)))) == "[[nan, nan, nan, nan]]"


def test_without_jit():
    """Where JAX compiles nothing, the function runs each time."""
    ran = []
    fast = shared(lambda v: ran.append(v.s) or v.x + 1, 1, 2)
    ran.clear()
    with jax.disable_jit():
        for s in (1, 2, 1):
            assert listed(fast(Tagged(ONES, s))) == [[2.0] * 4]
    assert ran == [1, 2, 1]


# Constants ----------------------------------------------------------------------------


def large(last, dtype=np.float32):
    """Far more than any text of a program shows."""
    x = np.zeros(100_000, dtype)
    x[-1] = last
    return x


CONSTANTS = {
    "large": (large(1), large(2)),
    "middle": (np.r_[np.zeros(500), 1, np.zeros(500)], np.zeros(1001)),
    "zero": (0.0, -0.0),
    "zeros": (np.zeros(3), -np.zeros(3)),
    "not a number": (np.array([np.nan]), np.array([-np.nan])),
    "dtype": (np.float32(2), np.float64(2)),
    "kind": (2, 2.0),
    "bool": (True, 1),
    "shape": (np.ones(2), np.ones((2, 1))),
    "large dtype": (large(1), large(1, np.int32)),
    "jax": (jnp.ones(2), jnp.zeros(2)),
    "weak": (jnp.asarray(2.0), jnp.float32(2.0)),
    "key": (jax.random.key(1), jax.random.key(2)),
    "low precision": (np.ones(2, jnp.bfloat16), np.ones(2, np.float16)),
}


@pytest.mark.parametrize("which", CONSTANTS)
@pytest.mark.parametrize("use", ["returned", "multiplied"])
def test_constant(which, use):
    """A constant in the program is each structure's own, to the last bit and type."""

    def fn(v):
        s = jax.random.key_data(v.s) if which == "key" else v.s
        return jnp.asarray(s) if use == "returned" else s * jnp.sum(v.x)

    fast, x = sa.batch(fn), np.ones(2, np.int8)
    for s in CONSTANTS[which] * 2:
        result = fast(Tagged(x, s))
        one = fn(Tagged(x[0], s))
        assert (result.dtype, result.weak_type) == (one.dtype, one.weak_type)
        assert (
            np.asarray(result).tobytes() == np.asarray(jnp.stack([one] * 2)).tobytes()
        )


class Ratio(float):
    """A float by another name."""


class Slotted:
    """It keeps what its `__eq__` forgets where only its own class sees it."""

    __slots__ = ("__gain",)

    def __init__(self, gain):
        self.__gain = gain

    def __eq__(self, other):
        return isinstance(other, Slotted)

    def __hash__(self):
        return 0

    @property
    def gain(self):
        return self.__gain


LIKE = {
    "range": ([range(0, 3, 2), range(0, 4, 2)], lambda s: s.stop),
    "slice": ([slice(0, 1), slice(0, True)], lambda s: 2 if s.stop is True else 1),
    "float": ([Ratio(0.0), Ratio(-0.0)], lambda s: math.copysign(1, s)),
    "slots": ([Slotted(1), Slotted(2)], lambda s: s.gain),
    "tuple": ([(1,), Single(1), Row([1])], lambda s: len(type(s).__name__)),
    "list": ([[1], Items([1])], lambda s: len(type(s).__name__)),
    "dict": ([{"a": 1}, collections.OrderedDict(a=1)], lambda s: len(type(s).__name__)),
    "inside": ([((1,),), (Single(1),)], lambda s: len(type(s[0]).__name__)),
    "string": (["a", np.str_("a")], lambda s: 1 if type(s) is str else 2),
    "order": ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], lambda s: next(iter(s.values()))),
}


@pytest.mark.parametrize("which", LIKE)
def test_equal_but_not_the_same(which):
    """What Python calls equal may still be told apart by a function."""
    statics, read = LIKE[which]
    fast = sa.batch(lambda v: v.x * read(v.s))
    for s in statics * 2:
        assert listed(fast(Tagged(ONES, s))) == [[read(s)] * 4]


def test_equal_constants():
    """Equal constants in unequal static data are one program."""

    class Box:
        def __init__(self, held):
            self.held = held

    boxes = [Box(np.arange(100_000.0)) for _ in range(3)]
    shared(lambda v: v.x + v.s.held.sum(), *boxes)
    shared(lambda v: v.x + v.s.held, *boxes)


@pytest.mark.parametrize("again", ["device", "grad", "jit", "lower", "copy"])
def test_constant_that_is_changed_later(again):
    """What was traced keeps the constant that it was traced with."""
    s, x = np.array([2.0, 3.0], np.float32), np.ones(2, np.float32)
    fast = sa.batch(lambda v: (v.x * v.s).sum())
    assert listed(fast(Tagged(x, s))) == [[5.0, 5.0]]
    before = s.copy()
    s += 10
    if again == "device":
        result = fast(Tagged(jax.device_put(x, jax.devices()[1]), before))
    elif again == "grad":
        result = jax.grad(lambda x: fast(Tagged(x, before)).sum())(x)
    elif again == "jit":
        result = jax.jit(lambda x: fast(Tagged(x, before)))(x)
    elif again == "lower":
        result = fast.lower(Tagged(x, before)).compile()(Tagged(x, before))
    else:
        result = fast(Tagged(x, before))
    assert listed(result) == [[5.0, 5.0]]
    assert listed(fast(Tagged(x, s))) == [[25.0, 25.0]]


# What the function closes over --------------------------------------------------------


def test_changed_global():
    """As for `jax.jit`: a known structure keeps its trace, a new one sees it new."""
    scale = [2.0]
    fast = sa.batch(lambda v: v.x * scale[0])
    plain = jax.jit(jax.vmap(lambda v: v.x * scale[0]))
    for f in (fast, plain):
        scale[0] = 2.0
        assert listed(f(Tagged(ONES, 1))) == [[2.0] * 4]
        scale[0] = 3.0
        assert listed(f(Tagged(ONES, 1))) == [[2.0] * 4]
        assert listed(f(Tagged(ONES, 2))) == [[3.0] * 4]
        assert listed(f(Tagged(ONES, 1))) == [[2.0] * 4]


def test_functions_of_one_name():
    """Functions that look alike have their own programs."""
    functions = [lambda v, k=k: v.x * k for k in (1.0, 2.0, 3.0)]
    for _ in range(2):
        for k, fn in enumerate(functions, 1):
            assert listed(sa.batch(fn)(Tagged(ONES, 0))) == [[float(k)] * 4]


def test_inner_jit():
    """Jitted functions inside, equal in name and shape, are told apart."""

    def fn(v):
        return jax.jit(lambda x: x * v.s)(v.x)

    fast = sa.batch(fn)
    for s in (1.0, 2.0, 1.0, 2.0):
        assert listed(fast(Tagged(ONES, s))) == [[s] * 4]


@pytest.mark.parametrize("how", ["jit", "grad", "vmap"])
def test_tracer_of_the_function_around(how):
    """A function that closes over a traced value is right for each structure."""

    def total(c):
        fast = sa.batch(lambda v: v.x * c * v.s)
        return sum(fast(Tagged(ONES, s)).sum() for s in (1, 1.0, 2))

    for c in (3.0, 5.0):
        if how == "jit":
            assert listed(jax.jit(total)(c)) == [16 * c]
        elif how == "grad":
            assert listed(jax.grad(total)(c)) == [16.0]
        else:
            assert listed(jax.vmap(total)(c * ONES[:2])) == [[16 * c] * 2]


def test_batched_inside_of_batched():
    """Batched functions call each other, and themselves, with what is static there."""

    def power(v):
        if v.s == 0:
            return v.x
        return fast(Tagged(jnp.stack([v.x, v.x]), v.s - 1)).sum()

    fast = sa.batch(power)
    for s in (3, 1, 0, 3):
        assert listed(fast(Tagged(ONES, s))) == [[2.0**s] * 4]


@pytest.mark.parametrize("form", ["cond", "scan", "while", "switch", "map"])
def test_control_flow(form):
    """A static deep inside a loop or a branch is read."""

    def fn(v):
        if form == "cond":
            return jax.lax.cond(v.x > 0, lambda: v.s, lambda: 0.0)
        if form == "scan":
            return jax.lax.scan(lambda c, _: (c + v.s, None), 0.0, None, length=1)[0]
        if form == "while":
            return jax.lax.while_loop(lambda c: c < v.s, lambda c: c + 1, 0.0)
        if form == "switch":
            return jax.lax.switch(1, [lambda: 0.0, lambda: v.x * v.s])
        return jax.lax.map(lambda y: y * v.s, v.x[None])[0]

    fast = sa.batch(fn)
    for s in (1.0, 2.0, 1.0, 2.0):
        assert listed(fast(Tagged(ONES, s))) == [[s] * 4]


# Effects ------------------------------------------------------------------------------


@pytest.mark.parametrize("reads", [True, False])
def test_pure_callback(reads):
    """A callback to Python is each structure's own, whatever it reads."""
    calls = []

    def fn(v):
        def host(x):
            calls.append(v.s)
            return x * (v.s if reads else 1)

        shape = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(host, shape, v.x, **SEQUENTIAL)

    fast = sa.batch(fn)
    for s in (1, 2, 1):
        assert listed(fast(Tagged(ONES, s))) == [[float(s if reads else 1)] * 4]
        assert calls
        assert set(calls) == {s}
        calls.clear()


def test_io_callback():
    """A side effect happens at each call, with the structure's own static data."""
    seen = []

    def fn(v):
        io_callback(lambda x: seen.append((v.s, float(x))), None, v.x)
        return v.x

    fast = sa.batch(fn)
    for s in (1, 2, 1, 2):
        fast(Tagged(ONES[:2], s))
        jax.effects_barrier()
        assert seen == [(s, 1.0)] * 2
        seen.clear()


@pytest.mark.parametrize("s", ["a", "b"])
def test_debug_print(s, capsys):
    """A print in the function prints at each call, each structure its own."""

    def fn(v):
        jax.debug.print(v.s + " {}", v.x)
        return v.x

    fast = sa.batch(fn)
    for each in ("a", "b"):
        fast(Tagged(ONES[:1], each))
    jax.effects_barrier()
    capsys.readouterr()
    for _ in range(2):
        fast(Tagged(ONES[:1], s))
        jax.effects_barrier()
        assert capsys.readouterr().out == f"{s} 1.0\n"


def test_debug_callback_is_called_each_time():
    """An effect that is the same for all happens for structures that look the same."""
    seen = []
    fast = sa.batch(lambda v: (jax.debug.callback(seen.append, v.x), v.x))
    for s in (1, 2, 3, 1):
        fast(Tagged(ONES[:2], s))
        jax.effects_barrier()
    assert listed(seen) == [1.0] * 8


# Donation -----------------------------------------------------------------------------


def test_donation():
    """A shared program donates for each structure, and only where it was asked to."""

    def fn(v):
        return v.x + 1

    kept, given = shared(fn, 1, 2), shared(fn, 1, 2, donate_argnums=0)
    for s in (1, 2, 3):
        x = jnp.asarray(ONES) + 0
        assert listed(kept(Tagged(x, s))) == [[2.0] * 4]
        assert not x.is_deleted()
        assert listed(given(Tagged(x, s))) == [[2.0] * 4]
        assert x.is_deleted()
        with pytest.raises((RuntimeError, ValueError), match="deleted"):
            given(Tagged(x, s))


# Derivatives --------------------------------------------------------------------------


def own_jvp(v):
    """A forward that reads no static, with a rule that does."""

    @jax.custom_jvp
    def same(x):
        return x * 1

    same.defjvp(lambda primals, tangents: (same(*primals), v.s * tangents[0]))
    return same(v.x)


def own_vjp(v):
    """A function with a derivative of its own, which reads the static."""

    @jax.custom_vjp
    def same(x):
        return x * 1

    same.defvjp(lambda x: (same(x), None), lambda _, t: (v.s * t,))
    return same(v.x)


def deep_jvp(v):
    """The rule inside of a loop in a jitted function."""
    inner = jax.jit(lambda x: own_jvp(Tagged(x, v.s)))
    return jax.lax.scan(lambda c, _: (inner(c), None), v.x, None, length=1)[0]


def remembered_vjp(v):
    """The static comes with what the forward keeps."""

    @jax.custom_vjp
    def same(x):
        return x * 1

    same.defvjp(lambda x: (same(x), jnp.float32(v.s)), lambda s, t: (s * t,))
    return same(v.x)


TOTAL = {
    "grad": lambda fast, x, s: jax.grad(lambda x: fast(Tagged(x, s)).sum())(x),
    "jit of grad": lambda fast, x, s: jax.jit(
        jax.grad(lambda x: fast(Tagged(x, s)).sum())
    )(x),
    "grad of jit": lambda fast, x, s: jax.grad(
        jax.jit(lambda x: fast(Tagged(x, s)).sum())
    )(x),
    "vmap of grad": lambda fast, x, s: jax.vmap(
        jax.grad(lambda x: fast(Tagged(x, s)).sum())
    )(x[None])[0],
    "vjp": lambda fast, x, s: jax.vjp(lambda x: fast(Tagged(x, s)), x)[1](
        jnp.ones_like(x)
    )[0],
    "checkpoint": lambda fast, x, s: jax.grad(
        jax.checkpoint(lambda x: fast(Tagged(x, s)).sum())
    )(x),
    "scan": lambda fast, x, s: jax.grad(
        lambda x: jax.lax.scan(lambda c, _: (fast(Tagged(c, s)), 0), x, None, length=1)[
            0
        ].sum()
    )(x),
}


@pytest.mark.parametrize("how", TOTAL)
@pytest.mark.parametrize("fn", [own_jvp, own_vjp, deep_jvp, remembered_vjp])
def test_rule_that_reads_a_static(fn, how):
    """A derivative is by the structure's own rule, though the programs are shared."""
    # A function of its own: no other test finds its programs.
    fast = shared(lambda v: fn(v), 1.0, 2.0, 3.0)  # noqa: PLW0108
    for s in (3.0, 1.0, 2.0, 4.0):
        assert listed(TOTAL[how](fast, jnp.asarray(ONES), s)) == [[s] * 4]
        assert listed(fast(Tagged(ONES, s))) == [[1.0] * 4]


def test_tangents():
    """Forward mode uses the structure's own rule too."""
    fast = shared(own_jvp, 1.0, 2.0, x=ONES)
    for s in (2.0, 1.0, 3.0):
        _, tangent = jax.jvp(lambda x, s=s: fast(Tagged(x, s)), (ONES,), (ONES,))
        assert listed(tangent) == [[s] * 4]
        _, pushed = jax.linearize(lambda x, s=s: fast(Tagged(x, s)), ONES)
        assert listed(pushed(ONES)) == [[s] * 4]


def test_grad_first():
    """A structure that is known from `grad` alone shares with no wrong rule later."""
    fast = sa.batch(lambda v: own_jvp(v))  # noqa: PLW0108
    for s in (1.0, 2.0):
        assert listed(TOTAL["grad"](fast, jnp.asarray(ONES), s)) == [[s] * 4]
    for s in (2.0, 1.0):
        assert listed(fast(Tagged(ONES, s))) == [[1.0] * 4]
        assert listed(TOTAL["grad"](fast, jnp.asarray(ONES), s)) == [[s] * 4]


def test_batching_rule_that_reads_a_static():
    """A rule of `custom_vmap`, which only a `vmap` around asks for, is its own too."""

    def fn(v):
        @jax.custom_batching.custom_vmap
        def same(w):
            return w * 1

        same.def_vmap(lambda n, batched, w: (w * v.s, batched[0]))
        return v.x * same(v.w)

    spec = sa.AxesBuilder(default=0)
    spec.w = None
    fast = sa.batch(fn, in_axes=(spec,))
    w = np.ones((), np.float32)
    for s in (1.0, 2.0, 1.0):
        assert listed(fast(Tagged(ONES, s, w))) == [[1.0] * 4]
    for s in (2.0, 1.0, 3.0):
        outer = jax.vmap(lambda w, s=s: fast(Tagged(ONES, s, w)))(ONES[:2])
        assert listed(outer) == [[[s] * 4] * 2]


# Outputs ------------------------------------------------------------------------------


def test_statics_of_the_output():
    """The output holds the static data of its own structure."""
    fast = shared(lambda v: {"v": v, "text": f"<{v.s}>"}, "a", "b")
    for s in ("b", "a", "c"):
        result = fast(Tagged(ONES, s))
        assert (result["v"].s, result["text"]) == (s, f"<{s}>")


@pytest.mark.parametrize("held", [1, 1.0, True, 0.0, -0.0, (1,), (True,)], ids=repr)
def test_types_of_the_outputs_statics(held):
    """Equal static data of other types come back as they are."""
    fast = sa.batch(lambda v: v)
    for s in (1, 1.0, True, 0.0, -0.0, (1,), (True,)):
        fast(Tagged(ONES, s))
    assert repr(fast(Tagged(ONES, held)).s) == repr(held)


def test_output_of_a_changed_static():
    """A static that was changed in place later is not what an earlier output was of."""
    held = [1]
    fast = sa.batch(lambda v: Tagged(v.x, v.s))
    fast(Tagged(ONES, held))
    held.append(2)
    assert fast(Tagged(ONES, [1])).s == [1]
    assert fast(Tagged(ONES, held)).s == [1, 2]


CHANGES = {
    "list": (lambda: [1], lambda s: s.append(2)),
    "dict": (lambda: {"a": 1}, lambda s: s.update(a=2)),
    "set": (lambda: {1}, lambda s: s.add(2)),
    "deque": (lambda: collections.deque([1]), lambda s: s.append(2)),
    "ordered": (lambda: collections.OrderedDict(a=1), lambda s: s.update(b=2)),
    "nested": (lambda: ([1], {"k": [2]}), lambda s: s[1]["k"].append(3)),
    "array": (lambda: np.array([1, 2]), lambda s: s.__iadd__(1)),
    "arrays": (lambda: [(np.array([1, 2]),)], lambda s: s[0][0].fill(3)),
    "objects": (lambda: np.array([[1], None], object), lambda s: s[0].append(2)),
    "dataclass": (lambda: Setting(1), lambda s: setattr(s, "gain", 2)),
    "deep": (lambda: Setting([np.array([1])]), lambda s: s.gain[0].fill(2)),
    "list subclass": (lambda: Items([1]), lambda s: s.append(2)),
    "tuple subclass": (lambda: Row([[1]]), lambda s: s[0].append(2)),
    "named tuple": (lambda: Single([1]), lambda s: s.a.append(2)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_can_change(kind):
    """Each kind of static data may change: the output is that of its content now."""
    made, change = CHANGES[kind]
    fast = sa.batch(lambda v: Tagged(v.x * number(v.s), v.s))
    held = made()
    for _ in range(2):
        for s in (held, made(), held):
            result = fast(Tagged(ONES, s))
            assert fingerprint(result.s) == fingerprint(s)
            assert listed(result.x) == [[float(number(s))] * 4]
        change(held)


@pytest.mark.parametrize("kind", ["array", "deep", "arrays"])
def test_constants_that_can_change(kind):
    """An array deep in the static data is the constant that it was."""
    made, change = CHANGES[kind]

    def fn(v):
        s = v.s.gain if isinstance(v.s, Setting) else v.s
        while not isinstance(s, np.ndarray):
            s = s[0]
        return v.x * s

    fast, held = sa.batch(fn), made()
    first = listed(fast(Tagged(ONES, held)))
    change(held)
    slope = jax.grad(lambda x: fast(Tagged(x, made())).sum())(ONES)
    assert listed(slope) == [[sum(first[0][0])] * 4]
    assert listed(fast(Tagged(ONES, held))) != first
    assert listed(fast(Tagged(ONES, made()))) == first


def test_changed_output():
    """To change an output in place changes no later output."""
    fast = sa.batch(lambda v: Tagged(v.x, [v.s]))
    fast(Tagged(ONES, 1)).s.append(2)
    assert fast(Tagged(ONES, 1)).s == [1]


def test_structure_of_the_output():
    """One computation with several forms of output, each structure its own."""

    def fn(v):
        return {v.s: v.x} if v.s != "list" else [v.x]

    fast = shared(fn, "a", "b", "list")
    for s in ("list", "b", "a", "c"):
        assert fast(Tagged(ONES, s)).__class__ is (list if s == "list" else dict)
        assert s == "list" or list(fast(Tagged(ONES, s))) == [s]


def test_swapped_outputs():
    """Outputs in another order are another program, though nothing else differs."""

    def fn(v):
        return (v.x, v.w) if v.s else (v.w, v.x)

    fast = sa.batch(fn)
    for s in (True, False, True):
        x, w = ONES[:2], 2 * ONES[:2]
        expected = [[1.0] * 2, [2.0] * 2]
        assert listed(fast(Tagged(x, s, w))) == (expected if s else expected[::-1])


def test_what_varies():
    """Which outputs vary is worked out for each structure."""

    def fn(v):
        return v.x if v.s else jnp.ones(())

    fast = sa.batch(fn, out_axes=sa.AUTO)
    for s in (True, False, True, False):
        assert fast(Tagged(ONES, s)).shape == ((4,) if s else ())


def test_compiled_for_another_structure():
    """What was compiled for one structure is refused by its like."""
    fast = shared(lambda v: v, "a", "b")
    compiled = fast.lower(Tagged(ONES, "a")).compile()
    assert compiled(Tagged(ONES, "a")).s == "a"
    with pytest.raises(sa.BatchError, match="compiled for other inputs") as e:
        compiled(Tagged(ONES, "b"))
    assert len(e.value.problems) == 1


# Several at once ----------------------------------------------------------------------


def test_threads():
    """Structures that share a program may come at once, each with its own output."""
    fast, results = sa.batch(lambda v: Tagged(v.x + 1, v.s)), {}
    barrier = threading.Barrier(4)

    def run(first):
        barrier.wait()
        results[first] = [fast(Tagged(ONES, (first + i) % 4)) for i in range(8)]

    threads = [threading.Thread(target=run, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first in range(4):
        assert [r.s for r in results[first]] == [(first + i) % 4 for i in range(8)]
        assert listed([r.x for r in results[first]]) == [[2.0] * 4] * 8
    assert fast.cache_info().programs == 1


def test_threads_with_other_settings():
    """A setting of one thread does not reach a call in another."""
    fast, types = shared(lambda v: v.x / 3, 1, 2, x=np.ones(4)), {}
    barrier = threading.Barrier(2)

    def run(is_double):
        with ENABLE_X64(is_double):
            barrier.wait()
            results = [fast(Tagged(np.ones(4), s)) for s in (1, 2, 3, 1)]
        types[is_double] = {str(r.dtype) for r in results}

    threads = [threading.Thread(target=run, args=(flag,)) for flag in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert types == {True: {"float64"}, False: {"float32"}}


def test_shared_program_outlives_its_first_structure():
    """A program that others share is not lost with the structure it was traced for."""
    traced = []
    fast = sa.batch(lambda v: traced.append(v.s) or v.x + 1, max_programs=2)
    with compiles() as c:
        for s in (1, 2, 3, 4, 3):
            assert listed(fast(Tagged(ONES, s))) == [[2.0] * 4]
    assert (traced, c.total()) == ([1, 2, 3, 4], 1)


def test_function_can_go():
    """A shared program does not keep the function of the structure that came first."""

    def made():
        return sa.batch(lambda v: v.x + 1)

    fast = made()
    for s in (1, 2):
        fast(Tagged(ONES, s))
    gone = weakref.ref(fast.__wrapped__)
    del fast
    gc.collect()
    assert gone() is None


def test_a_compiled_program_knows_what_it_saw():
    """A callback that refers to a list that was changed since is not called."""

    def fn(v):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(
            lambda x: np.asarray(x * v.s[0], np.float32), shape, v.x, **SEQUENTIAL
        )

    gains = [2]
    x = jnp.arange(1.0, 2.0)
    compiled = sa.batch(fn).lower(Tagged(x, gains)).compile()
    np.testing.assert_array_equal(compiled(Tagged(x, [2])), [2])
    gains[0] = 7
    with pytest.raises(sa.BatchError, match="changed in place") as caught:
        compiled(Tagged(x, [2]))
    assert str(caught.value) == (
        "static data that the function saw was changed in place since, and a callback "
        "or the output still refers to it.\n\n  Fix: lower and compile it again"
    )
