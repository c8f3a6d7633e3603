"""Programs are few, found again by other wrappers, freed, and safe between threads."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import staged_axes as sa

X = jnp.arange(6.0).reshape(3, 2)


@struct.dataclass
class Body:
    x: object
    n: object = struct.field(pytree_node=False, default=1)


def counted():
    """A function that reads its static field, and what it was traced for."""
    traced = []

    def fn(body):
        traced.append(body.n)
        return body.x * body.n

    return fn, traced


def call(fast, n):
    """Calls and checks the result."""
    np.testing.assert_array_equal(fast(Body(X, n)), X * n)


def test_the_one_not_used_for_longest_is_dropped():
    """Use counts, also where a call went straight to its program."""
    fn, traced = counted()
    fast = sa.batch(fn, max_programs=2)
    for n in (1, 2, 1, 1, 3, 1, 2):
        call(fast, n)
    assert traced == [1, 2, 3, 2]
    assert fast.cache_info().structures == 2


def test_variants_in_the_leaves_are_dropped_in_the_same_order():
    """Leaves that are kept as they are count like static fields."""
    traced = []

    def fn(value):
        traced.append(value["n"])
        return value["x"] * value["n"]

    fast = sa.batch(fn, in_axes=({"x": 0, "n": sa.STATIC},), max_programs=2)
    for n in (1, 2, 1, 3, 1, 2):
        np.testing.assert_array_equal(fast({"x": X, "n": n}), X * n)
    assert traced == [1, 2, 3, 2]


def test_signatures_are_kept_apart():
    """Two shapes in turn are traced once each."""
    fn, traced = counted()
    fast = sa.batch(fn)
    for rows in (3, 2, 3, 2, 3):
        np.testing.assert_array_equal(fast(Body(X[:rows])), X[:rows])
    assert len(traced) == 2
    assert fast.cache_info().structures == 2


def test_what_is_kept_is_bounded():
    """1,000 structures leave 8 behind."""
    fast = sa.batch(lambda body: body.x, max_programs=8, warn_after=None)
    for n in range(1_000):
        fast(Body(X, n))
    info = fast.cache_info()
    assert (info.traces, info.structures, info.programs) == (1_000, 8, 1)


def test_memory_of_dropped_programs_is_freed():
    """The constants of a program go with it."""
    constants = {n: jnp.arange(1_000.0) + n for n in range(6)}

    def closing(body):
        return body.x + constants[body.n][:2]

    fast = sa.batch(closing, max_programs=2, warn_after=None)
    refs = []
    for n in range(6):
        fast(Body(X, n))
        refs.append(weakref.ref(constants.pop(n)))
    gc.collect()
    assert [ref() is None for ref in refs] == [True] * 4 + [False] * 2
    fast.cache_clear()
    gc.collect()
    assert all(ref() is None for ref in refs)


class Config:
    """Static data that can be watched."""


def test_statics_of_dropped_structures_are_freed():
    """Static objects live as long as the structures that they are in."""
    fast = sa.batch(lambda body: body.x, max_programs=2, warn_after=None)
    refs = []
    for _ in range(6):
        config = Config()
        refs.append(weakref.ref(config))
        fast(Body(X, config))
    del config
    gc.collect()
    assert sum(ref() is not None for ref in refs) <= 2
    fast.cache_clear()
    gc.collect()
    assert all(ref() is None for ref in refs)


def test_arguments_are_not_kept():
    """No array of a call outlives it."""
    fast = sa.batch(lambda body: body.x * 2)
    for _ in range(2):
        x = X + 1
        ref = weakref.ref(x)
        fast(Body(x))
        del x
        gc.collect()
        assert ref() is None


def test_a_refused_call_keeps_no_arguments():
    """Nor does a call that was not served by the program at hand."""
    fast = sa.batch(lambda body: body.x * 2)
    fast(Body(X))
    x = X[:2] + 1
    ref = weakref.ref(x)
    fast(Body(x))
    del x
    gc.collect()
    assert ref() is None


def test_the_function_is_not_kept():
    """A function dies when its last wrapper and its owner do."""
    fn, _ = counted()
    fast = sa.batch(fn)
    call(fast, 1)
    ref = weakref.ref(fn)
    del fn, fast
    gc.collect()
    assert ref() is None


def test_a_fresh_wrapper_finds_the_programs():
    """Wrapping in a loop traces once."""
    fn, traced = counted()
    for _ in range(3):
        spec = sa.AxesBuilder(default=0)
        spec.x = 0
        call(spec.batch(fn), 2)
        call(sa.batch(fn), 2)
    assert traced == [2]


class Model:
    """Something with a method."""

    def __init__(self, gain):
        self.gain = gain
        self.traced = []

    def step(self, body):
        self.traced.append(body.n)
        return body.x * self.gain

    def __call__(self, body):
        return self.step(body)


def test_a_method_is_found_again():
    """A bound method is made anew at each look, and is one function."""
    model, other = Model(2), Model(3)
    for _ in range(3):
        np.testing.assert_array_equal(sa.batch(model.step)(Body(X)), 2 * X)
        np.testing.assert_array_equal(sa.batch(other.step)(Body(X)), 3 * X)
        np.testing.assert_array_equal(sa.batch(model)(Body(X)), 2 * X)
    assert model.traced == [1, 1]
    ref = weakref.ref(model)
    del model
    gc.collect()
    assert ref() is None


def test_functions_with_equal_code_are_different():
    """Two closures of one line of code do not share what they close over."""

    def scaled(gain):
        return lambda body: body.x * gain

    two, three = scaled(2), scaled(3)
    np.testing.assert_array_equal(sa.batch(two)(Body(X)), 2 * X)
    np.testing.assert_array_equal(sa.batch(three)(Body(X)), 3 * X)


def test_callables_that_are_equal_are_different():
    """Functions are told by identity, whatever their `__eq__` says."""

    class Equal(Model):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    np.testing.assert_array_equal(sa.batch(Equal(2))(Body(X)), 2 * X)
    np.testing.assert_array_equal(sa.batch(Equal(3))(Body(X)), 3 * X)


@pytest.mark.parametrize(
    "options",
    [
        {"axis_name": "i"},
        {"axis_size": 3},
        {"out_axes": 1},
        {"out_axes": sa.AUTO},
        {"donate_argnums": 0},
        {"max_programs": 7},
        {"keep_unused": True},
    ],
    ids=lambda o: next(iter(o)),
)
def test_other_options_have_other_programs(options):
    """A wrapper with other options does not use what was traced without them."""
    fn, traced = counted()
    sa.batch(fn)(Body(X + 0, 2))
    sa.batch(fn, **options)(Body(X + 0, 2))
    assert traced == [2, 2]


def test_other_axes_have_other_programs():
    """A record that comes to other axes finds other programs."""
    fn, traced = counted()
    square = jnp.arange(4.0).reshape(2, 2)
    for axis in (0, 1, 0, 1):
        spec = sa.AxesBuilder(default=axis)
        np.testing.assert_array_equal(
            spec.batch(fn)(Body(square)), np.moveaxis(square, axis, 0)
        )
    assert len(traced) == 2


def test_what_cannot_be_referred_to_has_its_own_programs():
    """A callable without weak references works, one wrapper at a time."""

    class Slotted:
        __slots__ = ("gain",)

        def __init__(self, gain):
            self.gain = gain

        def __call__(self, body):
            return body.x * self.gain

    np.testing.assert_array_equal(sa.batch(Slotted(2))(Body(X)), 2 * X)
    np.testing.assert_array_equal(sa.batch(Slotted(3))(Body(X)), 3 * X)


def test_clearing_forgets_everything():
    """After `cache_clear` counts begin at zero, and all wrappers trace anew."""
    fn, traced = counted()
    one, other = sa.batch(fn), sa.batch(fn)
    for fast in (one, other, one):
        call(fast, 2)
    assert traced == [2]
    one.cache_clear()
    assert other.cache_info().traces == 0
    for fast in (other, one):
        call(fast, 2)
    assert traced == [2, 2]


def test_threads_share_one_trace():
    """Eight threads that begin at once trace each structure once."""
    fn, traced = counted()
    fast = sa.batch(fn)
    barrier = threading.Barrier(8)

    def work(k):
        barrier.wait()
        for i in range(20):
            call(fast, 1 + (i + k) % 4)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sorted(traced) == [1, 2, 3, 4]


def test_threads_with_few_programs_are_right():
    """Where threads drop each other's programs, results stay right."""
    fn, _ = counted()
    fast = sa.batch(fn, max_programs=2)

    def work(k):
        for i in range(15):
            call(fast, 1 + (i * (k + 1)) % 5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert fast.cache_info().structures <= 2


def test_functions_may_call_each_other():
    """A batched function inside another one is traced within its trace."""
    inner, traced = counted()
    fast = sa.batch(inner)
    outer = sa.batch(lambda body: fast(Body(body.x[None], body.n))[0] + 1)
    for n in (2, 3, 2):
        np.testing.assert_array_equal(outer(Body(X, n)), X * n + 1)
    assert traced == [2, 3]


def test_partials_are_told_by_identity():
    """One partial is one function; a new one is a new function."""
    traced = []

    def fn(gain, body):
        traced.append(gain)
        return body.x * gain

    double = partial(fn, 2)
    for _ in range(2):
        np.testing.assert_array_equal(sa.batch(double)(Body(X)), 2 * X)
    np.testing.assert_array_equal(sa.batch(partial(fn, 3))(Body(X)), 3 * X)
    assert traced == [2, 3]
