"""How often is traced, compiled and compared, and how much is kept.

With `--hypothesis-profile=long`, 10,000 different static values instead of 250.
"""

import collections
import copy
import functools
import gc
import threading
import warnings
import weakref
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings

import staged_axes as sa
from tagged import Tagged, compiles

ONES = np.ones(4, np.float32)


class Plain:
    """Static data that is compared by identity, as a rebuilt object is."""

    def __init__(self, held=None):
        self.held = held


class Counted:
    """Static data of which all have one hash; it counts how often it is asked."""

    asked: ClassVar = collections.Counter()

    def __init__(self, k):
        self.k = k

    def __eq__(self, other):
        self.asked["eq"] += 1
        return isinstance(other, Counted) and self.k == other.k

    def __hash__(self):
        self.asked["hash"] += 1
        return 7


@pytest.fixture
def traced():
    """What was traced, in order."""
    return []


@pytest.fixture
def double(traced):
    """A function that reads no static data, and notes each trace."""

    def double(v):
        traced.append(v.s)
        return v.x * 2

    return double


@pytest.fixture
def scale(traced):
    """A function that reads its static data, and notes each trace."""

    def scale(v):
        traced.append(v.s)
        return v.x * v.s

    return scale


def kept(fast):
    """Structures and programs that are kept."""
    info = fast.cache_info()
    return info.structures, info.programs


# Traces and compiles ------------------------------------------------------------------


def test_one_structure(scale, traced):
    """Many calls of one structure are one trace and one compile."""
    fast = sa.batch(scale)
    with compiles() as c:
        for k in range(20):
            fast(Tagged(k * ONES, 2.0))
    assert (len(traced), c.total(), kept(fast)) == (1, 1, (1, 1))


def test_static_that_is_not_read(double, traced):
    """A hundred values of a static that is not read are 100 traces and one compile."""
    fast = sa.batch(double)
    with compiles() as c:
        for _ in range(2):
            for k in range(100):
                fast(Tagged(ONES, k))
    assert (len(traced), c.total(), kept(fast)) == (100, 1, (100, 1))


def test_static_that_is_read(scale, traced):
    """Each value of a static that is read is a program, once."""
    fast = sa.batch(scale, warn_after=None)
    with compiles() as c:
        for _ in range(2):
            for k in range(10):
                fast(Tagged(ONES, float(k)))
    assert (len(traced), c.total(), kept(fast)) == (10, 10, (10, 10))


def test_types_of_a_static(scale, traced):
    """Equal values of other types are traced each, and never again."""
    fast = sa.batch(scale)
    for s in [1, 1.0, True, 0.0, -0.0] * 3:
        fast(Tagged(ONES, s))
    assert list(map(repr, traced)) == ["1", "1.0", "True", "0.0", "-0.0"]


@pytest.mark.parametrize(
    "made",
    [
        lambda: [1, (2.0, "a")],
        lambda: {"a": [1], "b": {2}},
        lambda: np.arange(3),
        lambda: jnp.arange(3),
        lambda: (np.arange(3), [np.arange(2)]),
        lambda: jax.random.key(3),
        lambda: Counted(3),
    ],
    ids=["list", "dict", "numpy", "jax", "nested", "key", "hashed"],
)
def test_equal_copies(double, traced, made):
    """Static data that is made anew with equal content is one structure."""
    fast = sa.batch(double)
    for _ in range(3):
        fast(Tagged(ONES, made()))
    assert (len(traced), kept(fast)) == (1, (1, 1))


def test_changed_in_place(double, traced):
    """A static changed in place is traced again, and found when changed back."""
    fast, s = sa.batch(double), [1]
    for _ in range(3):
        fast(Tagged(ONES, s))
        s.append(2)
        fast(Tagged(ONES, s))
        s.pop()
    assert (len(traced), kept(fast)) == (2, (2, 1))


@pytest.mark.parametrize("turns", [1, 3])
def test_signatures_in_turn(double, traced, turns):
    """Shapes, dtypes and weak types of one structure are traced once each."""
    fast = sa.batch(double)
    weak = jnp.broadcast_to(jnp.asarray(1.0), (4,))
    inputs = [ONES, ONES[:3], np.ones((4, 2)), np.ones(4, np.int32), weak]
    with compiles() as c:
        for _ in range(turns):
            for x in inputs:
                fast(Tagged(x))
    assert (len(traced), c.total()) == (5, 5)


def test_same_signature(double, traced):
    """NumPy and JAX, single and double arrays are one signature, as for `jax.jit`."""
    fast = sa.batch(double)
    for x in (ONES, jnp.asarray(ONES), ONES.astype(np.float64), ONES[::-1]):
        fast(Tagged(x))
    assert len(traced) == 1


def test_python_numbers(traced):
    """The value of a shared number is no part of the structure; its type is."""
    spec = sa.AxesBuilder(default=0)
    spec.w = None
    fast = sa.batch(lambda v: traced.append(1) or v.x * v.w, in_axes=(spec,))
    for w in (1.0, 2.0, 3.0, 1, 2, True, False):
        fast(Tagged(ONES, None, w))
    assert len(traced) == 3


@pytest.mark.parametrize(
    "under",
    [
        jax.jit,
        lambda f: jax.grad(lambda x: f(x).sum()),
        lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x])),
        lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), 0), x, None, length=3),
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    ],
    ids=["jit", "grad", "vmap", "scan", "jvp"],
)
def test_under_transformations(double, traced, under):
    """A call that is transformed again and again is traced once."""
    fast = sa.batch(double)
    for _ in range(3):
        under(lambda x: fast(Tagged(x, "a")))(ONES)
    assert len(traced) == 1


def test_transformed_after_a_plain_call(double, traced):
    """What a plain call traced serves `grad` too, also where the program is shared."""
    fast = sa.batch(double)
    for s in ("a", "b"):
        fast(Tagged(ONES, s))
        for _ in range(2):
            jax.grad(lambda x, s=s: fast(Tagged(x, s)).sum())(ONES)
    assert traced == ["a", "b"]


def test_one_trace_for_all_threads(double, traced):
    """Threads that come at once with one structure trace it once."""
    fast, barrier = sa.batch(double), threading.Barrier(4)

    def run():
        barrier.wait()
        for s in (1, 2):
            fast(Tagged(ONES, s))

    threads = [threading.Thread(target=run) for _ in range(4)]
    with compiles() as c:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (sorted(traced), kept(fast), c.total()) == ([1, 2], (2, 1), 1)


def test_failing_call_leaves_nothing(double, traced):
    """Calls that fail, before or in the function, make no structure and no program."""
    spec = sa.AxesBuilder(default=0)

    def fails(v):
        if v.s == "bad":
            raise KeyError(v.s)
        return double(v)

    fast = sa.batch(fails, in_axes=(spec,))
    fast(Tagged(ONES, "good"))
    for _ in range(2):
        with pytest.raises(KeyError, match="bad"):
            fast(Tagged(ONES, "bad"))
        with pytest.raises(sa.BindError, match="batch size") as e:
            fast(Tagged(ONES, "good", ONES[:3]))
        assert len(e.value.problems) >= 1
    fast(Tagged(ONES, "good"))
    assert (traced, kept(fast)) == (["good"], (1, 1))


# Built again --------------------------------------------------------------------------


def test_rebuilt_settings(double, traced):
    """A model built twice, with unequal statics that are used alike, compiles once."""

    def scaled(v):
        return double(v) * v.s.held["gain"] + v.s.held["offset"]

    def build():
        return Tagged(ONES, Plain({"gain": 3.0, "offset": np.arange(2.0)}))

    fast = sa.batch(scaled)
    with compiles() as c:
        first = fast(build())
    assert c.total() == 1
    with compiles() as c:
        second = fast(build())
    assert (c.total(), len(traced), kept(fast)) == (0, 2, (2, 1))
    assert first.tolist() == second.tolist() == [[6.0, 7.0]] * 4


def test_known_object(double, traced):
    """An object that is compared by identity is traced once."""
    fast, s = sa.batch(double), Plain()
    for _ in range(3):
        fast(Tagged(ONES, s))
    assert len(traced) == 1


def test_fresh_metadata(traced):
    """A class that makes its metadata anew for each flattening is traced once."""

    @jax.tree_util.register_pytree_node_class
    class Fresh:
        def __init__(self, x, sizes):
            self.x, self.sizes = x, sizes

        def tree_flatten(self):
            return (self.x,), (Counted(3), dict(self.sizes), list(self.sizes))

        @classmethod
        def tree_unflatten(cls, data, children):
            return cls(*children, data[1])

    fast, v = sa.batch(lambda v: traced.append(1) or v.x), Fresh(ONES, {"a": 1})
    for _ in range(4):
        fast(v)
    assert (len(traced), kept(fast)) == (1, (1, 1))


class Gain:
    """A callable object."""

    def __init__(self, k):
        self.k, self.traced = k, 0

    def __call__(self, v):
        self.traced += 1
        return v.x * self.k

    def method(self, v):
        self.traced += 1
        return v.x * self.k


@pytest.mark.parametrize("form", ["function", "partial", "object", "method"])
def test_fresh_wrapper(form):
    """A wrapper made anew for the same function and options compiles nothing."""
    gain = Gain(2)
    partial = functools.partial(Gain.__call__, gain)

    def function(v):
        return gain(v)

    def fn():
        forms = {"function": function, "partial": partial, "object": gain}
        return forms.get(form) or gain.method

    sa.batch(fn())(Tagged(ONES, 1))
    with compiles() as c:
        for _ in range(5):
            assert sa.batch(fn())(Tagged(ONES, 1)).tolist() == [2.0] * 4
    assert (gain.traced, c.total()) == (1, 0)


def test_fresh_record(double, traced):
    """A record that says the same, made anew or copied, finds the programs."""

    def spec():
        spec = sa.AxesBuilder(default=0)
        spec.w = None
        return spec

    value = Tagged(ONES, 1, ONES[:2])
    kept_spec = spec()
    with compiles() as c:
        for each in (kept_spec, spec(), copy.deepcopy(kept_spec)):
            sa.batch(double, in_axes=(each,))(value)
            each.batch(double)(value)
            each.bind(value).batch(double)(value)
    assert (len(traced), c.total()) == (1, 1)


def test_changed_record(double, traced):
    """A record that is changed and changed back finds what it had."""
    spec = sa.AxesBuilder(default=0)
    fast, value = spec.batch(double), Tagged(ONES, 1, ONES)
    for _ in range(3):
        for axis in (None, 0):
            spec.w = axis
            fast(value)
    assert (len(traced), kept(fast)) == (2, (2, 1))


def test_other_options(double, traced):
    """Other axes and sizes are other structures; other functions other programs."""
    value = Tagged(ONES, 1)
    for _ in range(2):
        for out_axes in (0, -1, sa.AUTO):
            sa.batch(double, out_axes=out_axes)(value)
    assert len(traced) <= 3

    def other(v):
        return double(v)

    sa.batch(other)(value)
    assert len(traced) <= 4


# Comparisons --------------------------------------------------------------------------


def test_no_comparison_of_known_objects(double):
    """A hit among 100 objects of one hash asks none of them, whichever comes."""
    fast = sa.batch(double)
    values = [Tagged(ONES, Counted(k)) for k in range(100)]
    for v in values:
        fast(v)
    Counted.asked.clear()
    for v in values:
        fast(v)
    assert Counted.asked["eq"] + Counted.asked["hash"] <= 2 * len(values)


def test_few_comparisons_of_equal_objects(double, traced):
    """An equal object that was never seen is found without asking all others."""
    fast = sa.batch(double)
    for k in range(100):
        fast(Tagged(ONES, Counted(k)))
    Counted.asked.clear()
    for k in range(100):
        fast(Tagged(ONES, Counted(k)))
    assert len(traced) == 100
    assert Counted.asked["eq"] <= 3 * 100
    assert Counted.asked["hash"] <= 10 * 100


# What is kept -------------------------------------------------------------------------


def test_least_recently_used(scale, traced):
    """The structure that was not used for longest is dropped."""
    fast = sa.batch(scale, max_programs=2)
    for s in (1.0, 2.0, 1.0, 3.0, 1.0, 3.0, 2.0, 1.0):
        assert fast(Tagged(ONES, s)).tolist() == [s] * 4
        assert kept(fast)[0] <= 2
    assert traced == [1.0, 2.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize("max_programs", [1, 3])
def test_bound_counts_signatures(double, max_programs):
    """Signatures of one structure count as structures do."""
    fast = sa.batch(double, max_programs=max_programs)
    for n in (1, 2, 3, 4, 1, 2):
        assert fast(Tagged(ONES[:n])).tolist() == [2.0] * n
        assert kept(fast)[0] <= max_programs


def test_clear(scale, traced):
    """After `cache_clear` nothing is kept, for all wrappers; calls work as before."""
    fast, same = sa.batch(scale), sa.batch(scale)
    fast(Tagged(ONES, 2.0))
    fast.cache_clear()
    assert kept(fast) == kept(same) == (0, 0)
    assert same(Tagged(ONES, 2.0)).tolist() == [2.0] * 4
    assert (len(traced), kept(fast)) == (2, (1, 1))


def test_clear_caches_of_jax(scale):
    """After `jax.clear_caches` calls work as before, and are kept again."""
    fast = sa.batch(scale)
    fast(Tagged(ONES, 2.0))
    for _ in range(2):
        jax.clear_caches()
        assert fast(Tagged(ONES, 2.0)).tolist() == [2.0] * 4
        assert fast(Tagged(ONES, 3.0)).tolist() == [3.0] * 4
    with compiles() as c:
        fast(Tagged(ONES, 2.0))
    assert c.total() == 0


def test_warned_once(scale):
    """One warning when one field has made many programs, none when it is turned off."""
    fast = sa.batch(scale, warn_after=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(6):
            fast(Tagged(ONES, float(k)))
            sa.batch(scale, warn_after=None, max_programs=7)(Tagged(ONES, float(k)))
    assert [w.category for w in caught] == [sa.RecompileWarning]


def test_explanation_counts(scale):
    """`explain_recompiles` counts what is kept."""
    fast = sa.batch(scale, max_programs=3)
    for s in (1.0, 2.0, 3.0, 4.0):
        fast(Tagged(ONES, s))
    why = fast.explain_recompiles()
    assert (why.structures, why.programs) == kept(fast) == (3, 3)
    assert [field.programs for field in why.fields] == [3]


# Memory -------------------------------------------------------------------------------


def alive(refs):
    """How many of these are still there."""
    gc.collect()
    return sum(ref() is not None for ref in refs)


def test_many_statics(traced):
    """However many statics have come, no more is kept than `max_programs`."""
    fast = sa.batch(lambda v: v.x * 2, max_programs=8)
    refs = []
    for _ in range(10 * settings.default.max_examples):
        s = Plain()
        refs.append(weakref.ref(s))
        fast(Tagged(ONES, s))
        del s
    assert alive(refs) <= 8
    assert kept(fast) == (8, 1)


def test_many_programs_that_differ():
    """Programs that were dropped leave no constants behind."""
    fast = sa.batch(lambda v: v.x + v.s.held, max_programs=2)
    refs = []
    for k in range(10):
        s = Plain(np.full(4, float(k)))
        refs += [weakref.ref(s), weakref.ref(s.held)]
        assert fast(Tagged(ONES, s)).tolist() == [[1.0 + k] * 4] * 4
        del s
    assert alive(refs) <= 2 * 2


def test_clear_frees_statics():
    """`cache_clear` lets go of the static data, and of leaves that are no arrays."""
    spec = sa.AxesBuilder(default=0)
    spec.w = None
    fast = sa.batch(lambda v: v.x, in_axes=(spec,))
    refs = []
    for _ in range(3):
        s, w = Plain(), Plain()
        refs += [weakref.ref(s), weakref.ref(w)]
        fast(Tagged(ONES, s, w))
        del s, w
    assert alive(refs) > 0
    fast.cache_clear()
    assert alive(refs) == 0


@pytest.mark.parametrize("is_called", [False, True], ids=["new", "called"])
def test_function_and_what_it_closes_over(is_called):
    """The cache keeps no function alive, nor an array that it closes over."""

    def made():
        large, small = np.ones(1000), jnp.ones(4)

        def fn(v):
            return v.x + large.sum() + small

        refs = [weakref.ref(x) for x in (fn, large, small)]
        return sa.batch(fn), refs

    fast, refs = made()
    if is_called:
        for s in (1, 2):
            fast(Tagged(ONES, s))
            gradient(fast, s)
    assert alive(refs) == 3
    del fast
    assert alive(refs) == 0


def test_method_and_its_object():
    """A bound method does not keep its object, nor the object's statics."""
    gain, s = Gain(2), Plain()
    refs = [weakref.ref(gain), weakref.ref(s)]
    sa.batch(gain.method)(Tagged(ONES, s))
    del gain, s
    assert alive(refs) == 0


def test_no_inputs_are_kept():
    """Neither the arrays of a call nor its result are kept."""
    fast = sa.batch(lambda v: v.x * 2)
    x = jnp.asarray(ONES) + 0
    result = fast(Tagged(x, 1))
    refs = [weakref.ref(x), weakref.ref(result)]
    del x, result
    assert alive(refs) == 0


def test_value_is_not_kept():
    """The nodes of a call are not kept, only their static data."""
    fast, value = sa.batch(lambda v: v.x * 2), Tagged(ONES, 1)
    fast(value)
    ref = weakref.ref(value)
    del value
    assert alive([ref]) == 0


def gradient(fast, s):
    """The gradient of a batched function, for one static."""
    return jax.grad(lambda x: fast(Tagged(x, s)).sum())(ONES)
