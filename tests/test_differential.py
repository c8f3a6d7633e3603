"""Random sequences of calls: each result is that of a loop over the batch, uncached.

`pytest tests/test_differential.py --hypothesis-profile=long` makes 1,000 sequences of 6
to 12 calls, and 1,000 of 3 to 6 calls from two threads each: at least 12,000 calls.
"""

import copy
import dataclasses
import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, strategies as st

import staged_axes as sa
from explicit_loop import (
    STATIC,
    Unfit,
    described,
    examples,
    is_array,
    number,
    stack,
    stacked,
)
from materials import BATCHES, LEAVES, SHAPES, STATICS, SUBTREES, Model, mutate


def functions():
    """Functions of one example, new ones each time; what they read differs."""

    def reads(v, flag=0):
        return {"y": v.x * 2 + number((v.s, flag)), "node": Model(v.x, None, None, v.s)}

    def ignores(v, flag=0):
        return {"y": v.x + 1, "node": Model(v.x, (), "text", v.s)}

    def multiplies(v, flag=0):
        is_constant = is_array(v.s) and not isinstance(v.s, complex)
        s = v.s if is_constant else number(v.s)
        return {"y": jnp.ravel(v.x)[0] * np.ravel(s), "node": Model(v.x, s, (), v.s)}

    def of_leaf(v, flag=0):
        if callable(v.w):
            return {"y": v.w(v.x), "w": v.w}
        w = v.w if isinstance(v.w, jax.Array | np.ndarray) else number(v.w)
        return {"y": v.x + (w[..., 0] if jnp.ndim(w) else w), "w": v.w}

    def in_derivative(v, flag=0):
        plus = jax.custom_jvp(lambda x: x + 1)
        plus.defjvp(lambda p, t: (plus(*p), t[0] * number((v.s, flag))))
        return {"y": plus(v.x)}

    def in_pullback(v, flag=0):
        plus = jax.custom_vjp(lambda x: x + 1)
        plus.defvjp(lambda x: (x + 1, None), lambda _, t: (t * number((v.s, flag)),))
        return {"y": plus(v.x)}

    def for_some_shapes(v, flag=0):
        return {"y": v.x + (number(v.s) if jnp.ndim(v.x) else 1)}

    def for_some_types(v, flag=0):
        return {"y": v.x * (number(v.s) if v.x.dtype == jnp.float32 else 1)}

    def raises(v, flag=0):
        return {"y": v.x + len(v.s), "s": Model(v.x, (), (), [v.s])}

    def of_structure(v, flag=0):
        keys = list(v.more) if isinstance(v.more, dict) else type(v.more).__name__
        return {"y": v.x + number(keys), "more": v.more}

    def branches(v, flag=0):
        if number(v.s) % 2:
            return {"y": v.x * 1.0, "more": [v.more]}
        return {"y": v.x, "more": {"k": 3, "s": v.s if isinstance(v.s, str) else ""}}

    class Shift:
        """Equal to each other, whatever they add."""

        def __init__(self, by):
            self.by = by

        def __eq__(self, other):
            return isinstance(other, Shift)

        def __hash__(self):
            return 0

        def __call__(self, v, flag=0):
            return {"y": v.x + self.by + number(v.s)}

        def shifted(self, v, flag=0):
            return {"y": v.x * self.by, "node": Model(v.x, "w", (), v.s)}

    one, two = Shift(1), Shift(2)
    gains = [
        functools.partial(lambda k, v, flag=0: {"y": v.x * k}, k) for k in (2, 2.0)
    ]
    return [
        [reads, ignores],
        [of_leaf, reads],
        [multiplies, ignores],
        [in_derivative, in_pullback],
        [for_some_shapes, for_some_types],
        [raises, branches],
        [of_structure, ignores],
        [one, two, one.shifted, two.shifted],
        gains,
    ]


# Steps -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Call:
    """One call; the numbers pick from what this sequence is made of."""

    fn: int
    batch: int
    shape: int
    static: int
    leaf: int
    subtree: int
    flag: int | None
    is_equal_copy: bool
    wrapper: str
    under: str


@dataclasses.dataclass(frozen=True)
class Write:
    """A decision for the two leaves that have any: for `x`, and for `w`."""

    x: int
    w: int | str | None


@dataclasses.dataclass(frozen=True)
class Mutate:
    """A change in place of what later calls will hold."""

    static: int
    leaf: int


@dataclasses.dataclass(frozen=True)
class Clear:
    """Drop the programs of a function."""

    fn: int


few = st.integers(0, 3)
UNDERS = ["", "", "", "", "jit", "grad", "vmap", "scan"]
WRAPPERS = ["kept", "kept", "kept", "again", "spec", "copied", "bound", "bound before"]


def calls(wrappers):
    """Calls through these wrappers."""
    return st.builds(
        Call,
        *[few, few, few, few, few, few, st.none() | few, st.booleans()],
        st.sampled_from(wrappers),
        st.sampled_from(UNDERS),
    )


changes = st.one_of(
    st.builds(
        Write,
        st.sampled_from([0, 0, -1, 1]),
        st.sampled_from([None, None, STATIC, STATIC, 0]),
    ),
    st.builds(Mutate, few, few),
    st.builds(Clear, few),
)


def some(options, most):
    """A few of the options, some of them twice."""
    return st.lists(st.sampled_from(options), min_size=1, max_size=most)


def of_one(families, most):
    """A few of one family."""
    return st.sampled_from(families).flatmap(lambda family: some(family, most))


# A sequence is made of few things, so that its calls often meet what is known.
materials = st.fixed_dictionaries(
    {
        "statics": of_one(STATICS, 4),
        "leaves": of_one(LEAVES, 3),
        "subtrees": of_one(SUBTREES, 2),
        "batches": some(BATCHES, 2),
        "shapes": some(SHAPES, 2),
        "group": st.integers(0, 8),
        "max_programs": st.sampled_from([1, 2, 256]),
        "out_axis": st.sampled_from([0, sa.AUTO, -1]),
    }
)


def pick(options, i):
    """One of the options, whatever the number."""
    return options[i % len(options)]


def outcome(call):
    """What a call gives, or how it fails."""
    try:
        return call()
    except (sa.StagedAxesError, Unfit):
        return Unfit
    except TypeError as e:  # from the user's function
        return str(e)


def two(x):
    """Two batches, to map or scan over."""
    return np.stack([x, np.add(x, x)])


def gradient(y, x):
    """The gradient of the sum, where there is any."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return y(x)
    # Strong: whether a gradient is weak depends for JAX itself on what is jitted.
    slope = jax.grad(lambda x: y(x).sum())(x)
    return slope.astype(slope.dtype)


UNDER = {
    "jit": lambda y, x: jax.jit(y)(x),
    "grad": gradient,
    "vmap": lambda y, x: jax.vmap(y)(two(x)),
    "scan": lambda y, x: jax.lax.scan(lambda _, x: (0, y(x)), 0, two(x))[1],
}
LOOP_UNDER = {
    "jit": lambda y, x: y(x),
    "grad": gradient,
    "vmap": lambda y, x: stack([y(x) for x in two(x)], 0),
    "scan": lambda y, x: stack([y(x) for x in two(x)], 0),
}


class Sequence:
    """What a sequence of calls is made of, and what it has made so far."""

    def __init__(
        self,
        statics,
        leaves,
        subtrees,
        batches,
        shapes,
        group,
        max_programs,
        out_axis,
    ):
        # A copy, since steps change them in place.
        self.statics, self.leaves = copy.deepcopy((statics, leaves))
        self.subtrees, self.batches, self.shapes = subtrees, batches, shapes
        self.functions = functions()[group]
        self.out_axis = out_axis
        self.spec = sa.AxesBuilder(default=0)
        self.spec.w = self.spec.more = None
        self.axes = {"x": 0, "w": None, "more": None}
        self.options = {
            "out_axes": out_axis,
            "max_programs": max_programs,
            "warn_after": None,
            "static_argnames": "flag",
        }
        self.kept = [(self.batched(fn), None) for fn in self.functions]
        self.bound = list(self.kept)

    def change(self, step):
        """Takes a step that is no call."""
        if isinstance(step, Mutate):
            mutate(pick(self.statics, step.static))
            mutate(pick(self.leaves, step.leaf))
        elif isinstance(step, Clear):
            pick(self.kept, step.fn)[0].cache_clear()
        else:
            self.axes = {"x": step.x, "w": step.w, "more": None}
            self.spec.x = step.x
            self.spec.w = sa.STATIC if step.w == STATIC else step.w

    def check(self, step):
        """The result of a call is that of the loop."""
        batched, looped = self.both(step)
        assert outcome(batched) == outcome(looped), step

    def both(self, step):
        """The call and the loop of a step, to be run."""
        static, leaf = pick(self.statics, step.static), pick(self.leaves, step.leaf)
        if step.is_equal_copy:
            static, leaf = copy.deepcopy((static, leaf))
        x = pick(self.batches, step.batch)(pick(self.shapes, step.shape))
        value = Model(x, leaf, pick(self.subtrees, step.subtree), static)
        flags = {} if step.flag is None else {"flag": pick(self.statics, step.flag)}
        fn = pick(self.functions, step.fn)
        before = pick(self.bound, step.fn)[1]
        axes = self.axes if step.wrapper != "bound before" else before or self.axes

        def batched():
            fast = self.wrapper(step, fn, value)
            if step.under:

                def y(x):
                    return fast(dataclasses.replace(value, x=x), **flags)["y"]

                return described(UNDER[step.under](y, x))
            return described(fast(value, **flags))

        def outputs(x):
            whole = dataclasses.replace(value, x=x)
            each = examples(whole, lambda path: axes[path[0].name])
            return [fn(example, **flags) for example in each]

        def out_axis(path):
            if self.out_axis is not sa.AUTO:
                return self.out_axis
            names = {getattr(key, "name", getattr(key, "key", None)) for key in path}
            is_shared = "w" in names and not isinstance(axes["w"], int)
            return None if is_shared or "more" in names else 0

        def looped():
            if step.under:
                axis = 0 if self.out_axis is sa.AUTO else self.out_axis

                def y(x):
                    return stack([output["y"] for output in outputs(x)], axis)

                return described(LOOP_UNDER[step.under](y, x))
            return stacked(outputs(x), out_axis)

        return batched, looped

    def wrapper(self, step, fn, value):
        """The batched function that a call goes through."""
        if step.wrapper == "again":
            return self.batched(fn)
        if step.wrapper == "spec":
            return self.spec.batch(fn, **self.options)
        if step.wrapper == "copied":
            return self.batched(fn, copy.deepcopy(self.spec))
        if step.wrapper == "bound":
            fast = self.spec.bind(value).batch(fn, **self.options)
            self.bound[step.fn % len(self.bound)] = fast, self.axes
            return fast
        return pick(
            self.bound if step.wrapper == "bound before" else self.kept, step.fn
        )[0]

    def batched(self, fn, spec=None):
        """A function over batches, made anew."""
        return sa.batch(fn, in_axes={"v": spec or self.spec}, **self.options)

    def check_bounds(self):
        """No more is kept than was asked for."""
        for fast, _ in self.kept:
            info = fast.cache_info()
            assert info.programs <= info.structures <= info.max_programs


rounds = st.tuples(st.lists(changes, max_size=2), calls(WRAPPERS))


@given(materials, st.lists(rounds, min_size=6, max_size=12))
def test_sequences(made_of, taken):
    """Whatever came before, a call gives what the loop gives, or fails as it does."""
    sequence = Sequence(**made_of)
    for changed, call in taken:
        for step in changed:
            sequence.change(step)
        sequence.check(call)
    sequence.check_bounds()


@given(materials, st.lists(calls(WRAPPERS[:6]), min_size=3, max_size=6))
def test_threads(made_of, taken):
    """So do calls from several threads at once, while another one drops programs."""
    sequence = Sequence(**made_of)
    both = [sequence.both(step) for step in taken]
    expected = [outcome(looped) for _, looped in both]
    barrier = threading.Barrier(3)
    results = {}

    def run(first):
        barrier.wait()
        order = [(first + i) % len(both) for i in range(len(both))]
        results[first] = {i: outcome(both[i][0]) for i in order}

    def clear():
        barrier.wait()
        for fast, _ in sequence.kept:
            fast.cache_clear()

    threads = [threading.Thread(target=run, args=(first,)) for first in (0, 1)]
    threads.append(threading.Thread(target=clear))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for first in (0, 1):
        for i, step in enumerate(taken):
            assert results[first][i] == expected[i], step
