"""`sa.vmap` in the place of `jax.vmap`: classes, forms of `in_axes`, bad calls."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import staged_axes as sa

X = jnp.arange(6.0).reshape(3, 2)


def test_equinox_modules():
    """A module with a function and a float among its leaves."""
    eqx = pytest.importorskip("equinox", reason="equinox is not installed")

    class Layer(eqx.Module):
        w: jax.Array
        act: object
        slope: float
        name: str = eqx.field(static=True, default="late")

    spec = sa.AxesBuilder(default=None)
    spec.w = 0
    layer = Layer(X - 2, jnp.tanh, 0.5)
    got = sa.vmap(lambda m: m.act(m.w).sum() * m.slope, spec)(layer)
    want = [np.tanh(np.asarray(X[i]) - 2).sum() * 0.5 for i in range(3)]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_nnx_states():
    """Variables of an nnx state by filter, as the loop does."""
    nnx = pytest.importorskip(
        "flax.nnx", reason="this flax has no nnx for this JAX", exc_type=ImportError
    )
    variables = {"w": nnx.Param(X), "n": nnx.BatchStat(jnp.array(2.0))}
    if jax.tree_util.all_leaves(variables.values()):  # an old release
        variables = {name: x.to_state() for name, x in variables.items()}
    state = nnx.State(variables)
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, nnx.Param, 0)

    def fn(state):
        w, n = jax.tree_util.tree_leaves(state)[::-1]
        return (w * n).sum()

    got = sa.vmap(fn, (spec,))(state)
    np.testing.assert_allclose(got, [float(X[i].sum()) * 2 for i in range(3)])


def test_sparse_leaves():
    """A BCOO is one leaf, mapped on a batch dimension as `jax.vmap` does."""
    dense = np.array([[[0.0, 1.0], [2.0, 0.0]], [[3.0, 0.0], [0.0, 4.0]]], np.float32)
    value = {"m": sparse.BCOO.fromdense(dense, n_batch=1), "v": jnp.array([1.0, 2.0])}
    spec = sa.AxesBuilder(default=0)
    spec.v = None
    got = sa.vmap(lambda v: v["m"] @ v["v"], (spec,))(value)
    np.testing.assert_allclose(got, dense @ np.array([1.0, 2.0]))
    assert spec.bind(value).leaf_axes == (0, None)


@pytest.mark.parametrize(
    "in_axes",
    [
        (0, None),
        [0, None],
        {"x": 0, "scale": None},
        (sa.AxesBuilder(default=0), sa.AxesBuilder(default=None)),
        (lambda leaf: 0 if leaf.ndim else None, lambda leaf: None),
    ],
    ids=["tuple", "list", "names", "builders", "functions"],
)
@pytest.mark.parametrize("run", [sa.vmap, sa.batch], ids=["vmap", "batch"])
def test_forms_of_in_axes(run, in_axes):
    """Each form says the same."""
    got = run(lambda x, scale: x * scale, in_axes=in_axes)(X, jnp.array(3.0))
    np.testing.assert_array_equal(got, np.asarray(X) * 3)


def test_keyword_arguments():
    """By name with its own axis; what nothing names is mapped on axis 0, as in JAX."""
    fn = lambda x, *, w, b: (x * w).sum() + b  # noqa: E731
    w, b = jnp.array([1.0, 10.0]), jnp.arange(3.0)
    got = sa.vmap(fn, in_axes={"w": None})(X, w=w, b=b)
    want = [float((X[i] * w).sum() + b[i]) for i in range(3)]
    np.testing.assert_allclose(got, want)


class Scaled:
    """A callable object with a method."""

    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by

    def more(self, x, extra=1.0):
        """The method."""
        return x * self.by + extra


@pytest.mark.parametrize(
    ("fn", "want"),
    [
        (Scaled(2), X * 2),
        (Scaled(2).more, X * 2 + 1),
        (functools.partial(lambda a, x: a + x, 5.0), X + 5),
        (jnp.sin, jnp.sin(X)),
    ],
    ids=["object", "method", "partial", "ufunc"],
)
def test_what_can_be_mapped(fn, want):
    """Objects, methods, partials and functions of JAX itself."""
    np.testing.assert_allclose(sa.vmap(fn)(X), want, rtol=1e-6)


def test_shared_leaves_stay_what_they_are():
    """A shared Python number can be asked in an `if`; strings and functions pass."""
    seen = []

    def fn(v):
        seen.append((type(v["order"]), v["name"], v["fn"]))
        return v["x"] ** 2 if v["order"] == 2 else v["x"]

    spec = sa.AxesBuilder(default=None)
    spec.x = 0
    value = {"x": X, "order": 2, "name": "n", "fn": np.sin}
    np.testing.assert_array_equal(sa.vmap(fn, spec)(value), np.asarray(X) ** 2)
    assert seen == [(int, "n", np.sin)]  # once, with the very objects


def test_what_the_function_raises_passes():
    """The user's own exception comes out as it is."""

    def fn(_):
        message = "mine"
        raise KeyError(message)

    with pytest.raises(KeyError, match="mine"):
        sa.vmap(fn)(X)


def test_too_few_entries_name_the_arguments():
    """Which argument has none is said by name (jax-ml/jax#9928)."""
    with pytest.raises(sa.BindError, match="scale") as caught:
        sa.vmap(lambda mean, cov, scale: mean, in_axes=(0, 0))(X, X, X)
    (problem,) = caught.value.problems
    assert problem.path == "scale"


def test_an_unknown_name_shows_the_form_for_a_dict():
    """A dict always means parameter names."""
    with pytest.raises(sa.RecordError, match=r"in_axes=\(\{\.\.\.\},\)") as caught:
        sa.vmap(lambda params: params, in_axes={"w": 0})
    (problem,) = caught.value.problems
    assert "'w'" in problem.path


@pytest.mark.parametrize("axis", [True, 1.0, "0"], ids=["bool", "float", "text"])
def test_what_is_no_axis_is_refused(axis):
    """At the line that maps, before any call."""
    with pytest.raises(sa.RecordError, match=r"int or None|in_axes is an axis") as e:
        sa.vmap(lambda x: x, in_axes=axis)
    assert e.value.problems


def test_spmd_axis_name():
    """It is passed on."""
    got = sa.vmap(lambda x: x * 2, spmd_axis_name="d")(X)
    np.testing.assert_array_equal(got, np.asarray(X) * 2)
