"""Random sequences of calls: each answer is that of a loop that keeps nothing.

Between the calls values, statics, shapes, types and records change. The functions are
those of the module, so programs are met again from one sequence to the next.
"""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from hypothesis import given, settings
from hypothesis import strategies as st

import staged_axes as sa


@struct.dataclass
class Body:
    x: object
    label: object = struct.field(pytree_node=False, default=None)


class Named:
    """Compared by its name."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self):
        return 3

    def __repr__(self):
        return f"Named({self.name!r})"


class Lost:
    """Compared by identity."""

    def __repr__(self):
        return "Lost()"


# Those that change in place are kept from call to call; the others are made anew.
CHANGING = {"list": [1], "dict": {"a": 1}, "array": np.ones(2), "set": {1}}
LABELS = {
    "one": lambda: 1,
    "one as float": lambda: 1.0,
    "one as bool": lambda: True,
    "one of numpy": lambda: np.int32(1),
    "zero": lambda: 0.0,
    "minus zero": lambda: -0.0,
    "nan": lambda: float("nan"),
    "text": lambda: "a" + "b",
    "none": lambda: None,
    "tuple": lambda: (1, (2.0, "a")),
    "tuple of ints": lambda: (1, (2, "a")),
    "array in a tuple": lambda: (np.arange(3),),
    "other array in a tuple": lambda: (np.arange(1, 4),),
    "named": lambda: Named("a"),
    "named otherwise": lambda: Named("b"),
    "lost": Lost,
    "treedef": lambda: jax.tree.structure({"a": 1}),
    **{name: (lambda x: lambda: x)(x) for name, x in CHANGING.items()},
}


def change(name):
    """Changes one of those in place."""
    x = CHANGING[name]
    match name:
        case "list":
            x.append(len(x)) if len(x) < 4 else x.clear()
        case "dict":
            x["a"] = (x["a"] + 1) % 4
        case "array":
            x[0] = (x[0] + 1) % 4
        case "set":
            x.add(len(x) + 1) if len(x) < 4 else x.clear()


def weight(label):
    """A number that tells labels apart by type and content."""
    return float(sum(map(ord, f"{type(label).__name__} {label!r}")) % 1009)


def reads_all(v, gain):
    """A function that reads everything, also in Python."""
    x, label = v["body"].x, v["body"].label
    return {
        "body": Body(x * jnp.asarray(weight(label), x.dtype), label),
        "sum": jnp.sum(v["y"]) * gain,
        "name": type(label).__name__,
    }


def reads_little(v, gain):
    """A function for which most labels are one program."""
    is_text = isinstance(v["body"].label, str)
    return {
        "body": v["body"].replace(x=v["body"].x + (1 if is_text else 2)),
        "sum": jnp.sum(v["y"]) * gain,
        "name": "",
    }


def loop(fn, v, gain, y_axis):
    """One example after the other, eagerly; the outputs stacked."""
    n = v["body"].x.shape[0]
    outs = []
    for i in range(n):
        y = v["y"] if y_axis is None else jnp.take(jnp.asarray(v["y"]), i, y_axis)
        one = {"body": Body(v["body"].x[i], v["body"].label), "y": y}
        outs.append(fn(one, jnp.asarray(gain)))
    return outs


def same(got, outs, label):
    """Is the batched output that of the loop?"""
    for part in (lambda o: o["body"].x, lambda o: o["sum"]):
        expected = jnp.stack([part(o) for o in outs])
        assert part(got).dtype == expected.dtype
        np.testing.assert_allclose(part(got), expected, rtol=1e-3)
    assert got["name"] == outs[0]["name"]
    assert type(got["body"].label) is type(label)
    assert weight(got["body"].label) == weight(label)


# Each example is several calls, many of which compile: 5 examples in the short profile,
# 200 in the long one, which makes more than 10,000 calls.
few = settings(max_examples=settings().max_examples // 5)
steps = st.fixed_dictionaries(
    {
        "label": st.sampled_from(sorted(LABELS)),
        "change": st.sampled_from([None, None, *CHANGING]),
        "n": st.sampled_from([2, 2, 2, 3]),
        "dtype": st.sampled_from(["float32", "float32", "int32", "float16"]),
        "library": st.sampled_from([np, jnp]),
        "y_axis": st.sampled_from([0, 0, 1, None]),
        "gain": st.sampled_from([2, 2.0, 3.0, np.float32(2), True]),
        "fresh": st.booleans(),
    }
)


def value_of(step):
    """The value of one step."""
    n, library = step["n"], step["library"]
    x = library.arange(2.0 * n).reshape(n, 2).astype(step["dtype"])
    y = library.arange(1.0 * n * n).reshape(n, n).astype("float32")
    return {"body": Body(x, LABELS[step["label"]]()), "y": y}


@pytest.mark.parametrize("fn", [reads_all, reads_little], ids=lambda f: f.__name__)
@pytest.mark.parametrize("max_programs", [2, 5, 64])
@few
@given(sequence=st.lists(steps, min_size=4, max_size=8))
def test_every_answer_is_that_of_the_loop(fn, max_programs, sequence):
    """Whatever came before, nothing stale and nothing of another call is served."""
    spec = sa.AxesBuilder(default=0)
    options = {"max_programs": max_programs, "warn_after": None}
    kept = sa.batch(fn, in_axes=(spec, None), **options)
    for step in sequence:
        if step["change"]:
            change(step["change"])
        spec.y = step["y_axis"]
        fast = sa.batch(fn, in_axes=(spec, None), **options) if step["fresh"] else kept
        value, gain = value_of(step), step["gain"]
        got = fast(value, gain)
        same(got, loop(fn, value, gain, step["y_axis"]), value["body"].label)
    assert kept.cache_info().structures <= max_programs


@pytest.mark.parametrize("max_programs", [2, 64])
@few
@given(sequence=st.lists(steps, min_size=9, max_size=12))
def test_every_answer_is_that_of_the_loop_in_threads(max_programs, sequence):
    """Three threads take the steps between them, all through one wrapper."""
    fast = sa.batch(
        reads_all, in_axes=(0, None), max_programs=max_programs, warn_after=None
    )
    calls = [(value_of(step), step["gain"]) for step in sequence]
    expected = [loop(reads_all, value, gain, 0) for value, gain in calls]

    def work(k):
        return [(i, fast(*calls[i])) for i in range(k, len(calls), 3) for _ in (0, 1)]

    with ThreadPoolExecutor(3) as pool:
        for answers in pool.map(work, range(3)):
            for i, got in answers:
                same(got, expected[i], calls[i][0]["body"].label)
