"""What `batch` takes, and the errors for what it does not take."""

import functools
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from jax.experimental import sparse

import staged_axes as sa

X = jnp.arange(6.0).reshape(3, 2)


def rows(fn, *args):
    """The oracle: the function on one row of each argument after the other."""
    return np.stack(
        [fn(*(np.asarray(a)[i] for a in args)) for i in range(len(args[0]))]
    )


def scale(x, gain=2.0, *, shift=0.0):
    """A function with a default and a keyword."""
    return x * gain + shift


class Scaler:
    """Something to call, with a method and a static one."""

    def __init__(self, gain):
        self.gain = gain

    def __call__(self, x):
        return x * self.gain

    def method(self, x):
        return x * self.gain

    @classmethod
    def of_class(cls, x):
        return x * 2

    @staticmethod
    def of_none(x):
        return x * 2


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * 2,
        scale,
        functools.partial(scale, gain=2.0),
        functools.partial(scale, shift=0.0),
        Scaler(2),
        Scaler(2).method,
        Scaler.of_class,
        Scaler.of_none,
        jax.jit(scale),
        lambda *args: args[0] * 2,
        lambda **kw: kw,
    ],
    ids=[
        "lambda",
        "function",
        "partial",
        "partial of a keyword",
        "object",
        "method",
        "class method",
        "static method",
        "jitted",
        "star",
        "keywords alone",
    ],
)
def test_every_kind_of_function(fn):
    """Whatever can be called can be batched."""
    fast = sa.batch(fn)
    for _ in range(2):
        if (
            fn is not None
            and "kw" in getattr(fn, "__code__", scale.__code__).co_varnames
        ):
            np.testing.assert_array_equal(fast(x=X)["x"], X)
        else:
            np.testing.assert_array_equal(fast(X), 2 * X)


def test_keywords_and_defaults():
    """Arguments by name are mapped on axis 0; a default stays in the function."""
    fast = sa.batch(scale)
    gain = jnp.arange(3.0)
    expected = rows(lambda x, g: x * g, X, gain)
    np.testing.assert_array_equal(fast(X, gain), expected)
    np.testing.assert_array_equal(fast(X, gain=gain), expected)
    np.testing.assert_array_equal(fast(x=X, gain=gain), expected)
    np.testing.assert_array_equal(fast(X, shift=gain), rows(scale_shift, X, gain))
    np.testing.assert_array_equal(fast(X), 2 * X)


def scale_shift(x, shift):
    """`scale` with the keyword alone."""
    return x * 2 + shift


def test_axes_by_name():
    """A dict of axes names arguments, given by position or name."""
    fast = sa.batch(scale, in_axes={"gain": None, "x": 1})
    np.testing.assert_array_equal(fast(X.T, 3.0), 3 * X)
    np.testing.assert_array_equal(fast(gain=3.0, x=X.T), 3 * X)


def test_shared_numbers_are_traced():
    """Another number is no other program."""
    fast = sa.batch(lambda x, gain: x * gain, in_axes=(0, None))
    for gain in (2.0, 3.0, 4.0):
        np.testing.assert_array_equal(fast(X, gain), gain * X)
    assert fast.cache_info().traces == 1


def test_a_number_that_python_needs():
    """JAX's own error passes, with a note that names the number and the way out."""

    def repeat(x, n):
        for _ in range(n):
            x = x * 2
        return x

    expected = jax.errors.TracerIntegerConversionError
    with pytest.raises(expected, match="traced array") as e:
        sa.batch(repeat, in_axes=(0, None))(X, 3)
    if hasattr(e.value, "__notes__"):
        assert "n. Where the program needs its value, decide sa.STATIC" in "".join(
            e.value.__notes__
        )
    np.testing.assert_array_equal(sa.batch(repeat, in_axes=(0, sa.STATIC))(X, 3), 8 * X)


def test_static_arguments_by_name():
    """They are Python values in the function, and need no entry in `in_axes`."""
    traced = []

    def fn(x, n, mode="up"):
        traced.append((n, mode))
        return x * n if mode == "up" else -x * n

    fast = sa.batch(fn, in_axes=(0,), static_argnames=("n", "mode"))
    for _ in range(2):
        np.testing.assert_array_equal(fast(X, 2), 2 * X)
        np.testing.assert_array_equal(fast(X, n=3), 3 * X)
        np.testing.assert_array_equal(fast(X, 3, mode="down"), -3 * X)
        np.testing.assert_array_equal(fast(X, n=True), X)
        np.testing.assert_array_equal(fast(X, n=1), X)
    assert traced == [(2, "up"), (3, "up"), (3, "down"), (True, "up"), (1, "up")]


def test_a_static_argument_may_be_a_container():
    """It is compared by content, and so it may change in place."""
    fast = sa.batch(lambda x, cfg: x * cfg["gain"], static_argnames="cfg")
    cfg = {"gain": 2}
    np.testing.assert_array_equal(fast(X, cfg=cfg), 2 * X)
    cfg["gain"] = 3
    np.testing.assert_array_equal(fast(X, cfg=cfg), 3 * X)
    np.testing.assert_array_equal(fast(X, cfg={"gain": 2}), 2 * X)
    assert fast.cache_info().traces == 2


def test_a_static_array():
    """An array at a `STATIC` place stays NumPy's, and its content is the key."""
    table = np.arange(2)

    def fn(v):
        assert isinstance(v["table"], np.ndarray)
        return v["x"] * int(v["table"].sum())

    fast = sa.batch(fn, in_axes=({"x": 0, "table": sa.STATIC},))
    np.testing.assert_array_equal(fast({"x": X, "table": table}), X)
    table[0] = 4
    np.testing.assert_array_equal(fast({"x": X, "table": table}), 5 * X)


def test_leaves_that_are_no_arrays():
    """A shared function or string is part of the key."""
    traced = []

    def fn(v):
        traced.append(v["f"])
        return v["f"](v["x"]) + len(v["name"])

    fast = sa.batch(fn, in_axes=({"x": 0, "f": None, "name": None},))
    for _ in range(2):
        for f in (jnp.sin, jnp.cos):
            out = fast({"x": X, "f": f, "name": "abc"})
            np.testing.assert_array_equal(out, f(X) + 3)
    out = fast({"x": X, "f": jnp.sin, "name": jnp.ones(3)})
    np.testing.assert_array_equal(out, jnp.sin(X) + 3)
    out = fast({"x": X, "f": jnp.sin, "name": "abcd"})
    np.testing.assert_array_equal(out, jnp.sin(X) + 4)
    assert len(traced) == 4


def test_a_leaf_that_turns_into_a_string():
    """A known structure with another kind of leaf is worked out anew."""
    fast = sa.batch(
        lambda v: v["x"] + (len(v["s"]) if isinstance(v["s"], str) else v["s"]),
        in_axes=({"x": 0, "s": None},),
    )
    for _ in range(2):
        np.testing.assert_array_equal(fast({"x": X, "s": 1.0}), X + 1)
        np.testing.assert_array_equal(fast({"x": X, "s": "ab"}), X + 2)


def test_outputs():
    """Axes of the output are those of `vmap`; what is no array passes through."""
    axes = {"x": -1, "name": None, "one": 0}
    fast = sa.batch(lambda x: {"x": x, "name": "a", "one": 1.0}, out_axes=axes)
    for _ in range(2):
        out = fast(X)
        np.testing.assert_array_equal(out["x"], X.T)
        np.testing.assert_array_equal(out["one"], np.ones(3))
        assert out["name"] == "a"


def test_outputs_that_vary_alone_are_mapped():
    """With `AUTO`, what is the same for all examples is given once."""
    fast = sa.batch(lambda x, y: (x + y, y), in_axes=(0, None), out_axes=sa.AUTO)
    for _ in range(2):
        both, shared = fast(X, 1.0)
        np.testing.assert_array_equal(both, X + 1)
        assert shared.shape == ()


def test_a_size_without_a_mapped_leaf():
    """`axis_size` says how many there are."""
    fast = sa.batch(lambda x: x, in_axes=None, axis_size=4)
    np.testing.assert_array_equal(fast(1.0), np.ones(4))


def test_names_of_axes():
    """Collectives work over `axis_name`."""
    fast = sa.batch(lambda x: jax.lax.psum(x, "i"), axis_name="i")
    np.testing.assert_array_equal(fast(X), np.stack([X.sum(0)] * 3))


@pytest.mark.parametrize("by", ["number", "negative number", "name"])
def test_donated_arguments(by):
    """The buffers of a donated argument are gone, those of others are not."""
    options = {
        "number": {"donate_argnums": 1},
        "negative number": {"donate_argnums": (-1,)},
        "name": {"donate_argnames": ["b"]},
    }
    fast = sa.batch(lambda a, b: (a + 1, b["x"] + 1), **options[by])
    for _ in range(2):
        a, b = X + 0, {"x": X + 0}
        one, other = fast(a, b)
        np.testing.assert_array_equal(one, X + 1)
        np.testing.assert_array_equal(other, X + 1)
        assert not a.is_deleted()
        assert b["x"].is_deleted()


def test_sparse_arrays():
    """BCOO is one leaf for the axes, and its parts are what the program takes."""
    dense = np.arange(12.0).reshape(3, 2, 2)
    x = sparse.BCOO.fromdense(dense, n_batch=1)
    fast = sa.batch(lambda m, v: m @ v, in_axes=(0, None))
    for _ in range(2):
        np.testing.assert_array_equal(fast(x, jnp.ones(2)), dense.sum(-1))
    doubled = sa.batch(lambda m: m * 2.0)(x)
    np.testing.assert_array_equal(doubled.todense(), 2 * dense)


def test_random_keys():
    """Typed keys are leaves like others."""
    keys = jax.random.split(jax.random.key(0), 3)
    fast = sa.batch(lambda k: jax.random.normal(k, (2,)))
    expected = np.stack([jax.random.normal(k, (2,)) for k in keys])
    np.testing.assert_allclose(fast(keys), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "path", "words"),
    [
        ({"static_argnames": "gian"}, "static_argnames='gian'", "did you mean 'gain'"),
        ({"donate_argnames": ["y"]}, "donate_argnames='y'", "are x, gain, shift"),
        ({"static_argnums": 1}, "static_argnums", "static_argnames"),
        ({"in_shardings": None}, "in_shardings", "keep_unused"),
        ({"max_programs": 0}, "max_programs", "at least 1"),
    ],
    ids=["static name", "donated name", "numbers", "shardings", "none kept"],
)
def test_options_that_are_none(options, path, words):
    """A wrong option is refused where it is written, with what to type instead."""
    with pytest.raises(sa.BatchError, match=r"\w") as e:
        sa.batch(scale, **options)
    assert e.value.problems[0].path == path
    assert words in str(e.value)


def test_what_is_no_function():
    """Only functions are batched."""
    with pytest.raises(sa.BatchError, match="a function, not an int") as e:
        sa.batch(3)
    assert e.value.problems[0].path == "fn"


@pytest.mark.parametrize("is_known", [False, True], ids=["at first", "when known"])
def test_shapes_that_do_not_fit(is_known):
    """The error is the library's own, also where the structure is known."""
    fast = sa.batch(lambda v: v["x"] + v["y"])
    if is_known:
        fast({"x": X, "y": X})
    with pytest.raises(sa.BindError, match="do not agree on the batch size") as e:
        fast({"x": X, "y": X[:2]})
    assert [p.shape for p in e.value.problems] == [(3, 2), (2, 2)]
    with pytest.raises(sa.BindError, match="does not have the axis") as e:
        fast({"x": X, "y": 1.0})
    assert e.value.problems[0].path == "v['y']"
    np.testing.assert_array_equal(fast({"x": X, "y": X}), 2 * X)


@struct.dataclass
class Body:
    x: object
    label: object = struct.field(pytree_node=False, default=None)


class Unhashable:
    __hash__ = None


class Moody:
    def __eq__(self, other):
        raise RuntimeError

    def __hash__(self):
        return 0


def test_statics_that_cannot_be_compared():
    """The error names each such field, nested ones too."""
    fast = sa.batch(lambda v: v["b"].x)
    bad = {"b": Body(X, Unhashable()), "c": [Body(X, [Unhashable()])]}
    with pytest.raises(sa.BatchError, match="2 fields cannot be compared") as e:
        fast(bad)
    assert [p.path for p in e.value.problems] == ["v['b'].label", "v['c'][0].label"]
    assert "Unhashable cannot be hashed" in str(e.value)
    assert fast({"b": Body(X), "c": [Body(X)]}).shape == X.shape


def test_statics_whose_eq_raises():
    """The second of two objects that cannot be compared is named."""
    fast = sa.batch(lambda v: v.x)
    fast(Body(X, Moody()))
    with pytest.raises(sa.BatchError, match="cannot be compared") as e:
        fast(Body(X, Moody()))
    assert e.value.problems[0].path == "v.label"
    assert "an __eq__ that raises RuntimeError" in str(e.value)


def test_leaves_that_cannot_be_compared():
    """So is a leaf that is kept as it is."""
    fast = sa.batch(lambda v: v["x"], in_axes=({"x": 0, "f": None},))
    with pytest.raises(sa.BatchError, match="1 field cannot be compared") as e:
        fast({"x": X, "f": Unhashable()})
    assert e.value.problems[0].path == "v['f']"


@pytest.mark.parametrize("hide", [lambda t: t, lambda t: {"a": [t]}, Body], ids=repr)
def test_statics_that_hold_a_tracer(hide):
    """A tracer in a static field is an error that names the field."""
    fast = sa.batch(lambda v: v.x)
    fast(Body(X))

    def outer(t):
        with pytest.raises(sa.StagedAxesError, match="tracer") as e:
            fast(Body(X, hide(t)))
        assert e.value.problems[0].path == "v.label"
        assert e.value.problems[0].kind == "tracer"
        return t

    jax.jit(outer)(1.0)


def test_a_static_leaf_that_is_traced():
    """Under `jit`, a number at a `STATIC` place is a tracer, which cannot be kept."""
    fast = sa.batch(lambda x, n: x * n, in_axes=(0, sa.STATIC))

    def outer(n):
        with pytest.raises(sa.StagedAxesError, match="tracer") as e:
            fast(X, n)
        assert e.value.problems[0].path == "n"
        return n

    jax.jit(outer)(1)


ENDLESS = """
import jax.numpy as jnp, staged_axes as sa
x = [jnp.ones(3)]
x.append(x)
for run in (sa.vmap, sa.batch):
    try:
        run(lambda v: v)(x)
    except sa.BindError as e:
        print(e)
try:
    sa.AxesBuilder().bind(x)
except sa.BindError as e:
    print(e)
"""


def test_a_container_that_holds_itself():
    """JAX cannot flatten it; the error says so."""
    # In a process of its own: JAX gives back no recursion depth after such a failure.
    code = [sys.executable, "-c", ENDLESS]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    assert done.stdout.count("contains itself") == 3


def test_a_field_that_makes_many_programs_is_warned_of():
    """Once, when it alone has made eight, with its name."""
    fast = sa.batch(lambda v: v.x * v.label)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(7):
            fast(Body(X, n))
    with pytest.warns(sa.RecompileWarning, match=r"compiled 8 times because .label"):
        fast(Body(X, 7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8, 12):
            fast(Body(X, n))


def test_the_warning_points_at_the_call():
    """Its line is the line that called."""
    fast = sa.batch(lambda v: v.x * v.label, warn_after=2)
    fast(Body(X, 0))
    with pytest.warns(sa.RecompileWarning, match="warn_after=None") as record:
        fast(Body(X, 1))
    assert record[0].filename == __file__


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([Body(X, n) for n in range(12)], {"warn_after": None}),
        ([Body(X[:, :1] * n, f"{n}") for n in range(12)], {}),
        ([Body((X, f"{n}", n), n) for n in range(1)], {}),
    ],
    ids=["turned off", "shared", "one"],
)
def test_no_warning(values, options):
    """None where it is turned off, nor where one program serves all."""
    read = options.get("warn_after", 8) is None
    fast = sa.batch(
        lambda v: jax.tree.leaves(v.x)[0] * (v.label if read else 1),
        in_axes=sa.per_leaf(lambda x: 0 if hasattr(x, "shape") else None),
        **options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in values:
            fast(value)


def test_why_it_recompiled():
    """Fields are named as code, with their values, those with most programs first."""
    fast = sa.batch(lambda v: v["w"].x * v["w"].label + v["y"].x)
    for n, name in [(2, "a"), (3, "a"), (3, "b"), (0.5, "b")]:
        fast({"w": Body(X, n), "y": Body(X, name)})
    fast({"w": Body(X[:2], 2), "y": Body(X[:2], "a")})
    why = fast.explain_recompiles()
    assert why.programs == 4
    assert why.structures == 5
    assert {f.path: f.values for f in why.fields} == {
        "['w'].label": ("2", "3", "0.5"),
        "['y'].label": ("'a'", "'b'"),
        "['w'].x": ("f32[3,2] axis 0", "f32[2,2] axis 0"),
        "['y'].x": ("f32[3,2] axis 0", "f32[2,2] axis 0"),
    }
    assert "['w'].label: 2, 3, 0.5" in str(why)


def test_why_it_recompiled_with_several_arguments():
    """With more than one argument, fields begin with the argument's name."""
    fast = sa.batch(lambda v, n: v.x * n, in_axes=(0, sa.STATIC))
    for n in (1, 2):
        fast(Body(X), n)
    assert [(f.path, f.values) for f in fast.explain_recompiles().fields] == [
        ("n", ("1", "2"))
    ]


def test_lowering():
    """`lower` traces, shows the text, compiles, and the compiled program runs."""
    traced = []

    def fn(v):
        traced.append(v.label)
        return {"x": jnp.sin(v.x), "label": v.label}

    fast = sa.batch(fn)
    lowered = fast.lower(Body(jax.ShapeDtypeStruct(X.shape, X.dtype), "a"))
    assert "sine" in lowered.as_text()
    compiled = lowered.compile()
    out = compiled(Body(X, "a"))
    np.testing.assert_allclose(out["x"], np.sin(X), rtol=1e-6)
    assert out["label"] == "a"
    np.testing.assert_allclose(fast(Body(X, "a"))["x"], np.sin(X), rtol=1e-6)
    assert traced == ["a"]


@pytest.mark.parametrize(
    ("other", "path"),
    [
        (Body(X, "b"), ".label"),
        (Body(X[:2], "a"), ".x"),
        (Body(X.astype(int), "a"), ".x"),
    ],
    ids=["static", "shape", "dtype"],
)
def test_a_compiled_program_takes_its_own_inputs_alone(other, path):
    """Anything else is refused, with the field that differs."""
    compiled = sa.batch(lambda v: v.x * 2).lower(Body(X, "a")).compile()
    with pytest.raises(sa.BatchError, match="compiled for other inputs") as e:
        compiled(other)
    assert [p.path for p in e.value.problems] == [path]


def test_how_it_looks():
    """A batched function has the name, and says how many programs it has."""

    def double(x):
        """Twice as much."""
        return x * 2

    fast = sa.batch(double)
    assert repr(fast) == "<batched double: 0 programs>"
    fast(X)
    assert repr(fast) == "<batched double: 1 program>"
    assert fast.__name__ == "double"
    assert fast.__doc__ == "Twice as much."


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"donate_argnums": 5}, "donate_argnums takes numbers of positional "),
        ({"donate_argnums": -9}, "donate_argnums takes numbers of positional "),
        ({"donate_argnums": "x"}, "donate_argnums takes numbers of positional "),
        ({"donate_argnums": 1.5}, "donate_argnums takes numbers of positional "),
        ({"donate_argnames": 3}, "donate_argnames takes names of parameters"),
        ({"static_argnames": [1]}, "static_argnames takes names of parameters"),
        ({"warn_after": "a"}, "warn_after is how many programs one field may make"),
    ],
    ids=str,
)
def test_options_that_mean_nothing(options, text):
    """Each is refused where the function is made."""
    with pytest.raises(sa.BatchError, match=f"^{text}") as caught:
        sa.batch(lambda x: x, **options)
    assert caught.value.problems[0].path == next(iter(options))
