"""`sa.vmap` in the place of `jax.vmap`: under other transformations, with its options.

The expected results come from `jax.vmap` with axes made by hand, or are written down.
"""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa
from any_oracle import assert_same
from any_trees import Box, Eager, Fickle, Nested, Strict, Unhashable, Wheel

N = 3
X = jnp.arange(6.0).reshape(N, 2)
W = jnp.array([2.0, 5.0])


def value(x=X):
    """A wheel with a mapped radius and a shared drag."""
    return Wheel(radius=x, drag=W, label="rear")


def spec():
    """What was decided about it before there was one."""
    made = sa.AxesBuilder(default=0)
    made.drag = None
    return made


def fn(wheel):
    """Something of both leaves, and of the static data."""
    return jnp.sin(wheel.radius * wheel.drag).sum() * len(wheel.label)


def ours(x):
    """The mapped function, by the record."""
    return sa.vmap(fn, in_axes=(spec(),))(value(x))


def theirs(x):
    """The mapped function, by hand."""
    return jax.vmap(lambda row: fn(value(row)))(x)


def stepped(run):
    """A scan whose steps are mapped."""
    return lambda x: jax.lax.scan(lambda c, _: (c + 1.0, run(c)), x, length=2)


TRANSFORMATIONS = {
    "eager": lambda run: run,
    "jit": jax.jit,
    "grad": lambda run: jax.grad(lambda x: run(x).sum()),
    "value_and_grad": lambda run: jax.value_and_grad(lambda x: run(x).sum()),
    "hessian": lambda run: jax.hessian(lambda x: run(x).sum()),
    "jacrev": jax.jacrev,
    "jvp": lambda run: lambda x: jax.jvp(run, (x,), (jnp.ones_like(x),)),
    "linearize": lambda run: lambda x: jax.linearize(run, x)[1](jnp.ones_like(x)),
    "vjp": lambda run: lambda x: jax.vjp(run, x)[1](jnp.ones(N)),
    "checkpoint": lambda run: jax.grad(lambda x: jax.checkpoint(run)(x).sum()),
    "scan": stepped,
    "jit of grad of scan": lambda run: jax.jit(
        jax.grad(lambda x: stepped(run)(x)[1].sum())
    ),
    "vmap": lambda run: lambda x: jax.vmap(run)(jnp.stack([x, x + 1])),
    "pmap by vmap": lambda run: lambda x: jax.vmap(run, axis_name="devices")(x[None]),
    "while_loop": lambda run: (
        lambda x: jax.lax.fori_loop(0, 2, lambda _, c: c + run(c)[:, None], x)
    ),
    "cond": lambda run: lambda x: jax.lax.cond(x[0, 0] > 1, run, lambda c: -run(c), x),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_under(name):
    """Under a transformation the result is that of `jax.vmap` under it."""
    transform = TRANSFORMATIONS[name]
    assert_same(transform(ours)(X), transform(theirs)(X))


def test_grad_inside():
    """A gradient of one example, mapped."""
    got = sa.vmap(jax.grad(fn, allow_int=True), in_axes=(spec(),))(value())
    want = jax.vmap(lambda row: jax.grad(fn)(value(row)))(X)
    assert_same(got, want)


def test_the_gradient_of_a_shared_leaf_adds_up():
    """A shared leaf gathers the gradients of all examples."""

    def loss(wheel):
        return sa.vmap(fn, in_axes=(spec(),))(wheel).sum()

    got = jax.grad(loss)(value()).drag
    want = sum(np.asarray(jax.grad(fn)(value(row)).drag) for row in X)
    np.testing.assert_allclose(got, want, rtol=1e-5)


COLLECTIVES = {
    "psum": lambda v: jax.lax.psum(v, "i"),
    "pmean": lambda v: jax.lax.pmean(v, "i"),
    "axis_index": lambda v: v + jax.lax.axis_index("i"),
    "all_gather": lambda v: jax.lax.all_gather(v, "i"),
    "ppermute": lambda v: jax.lax.ppermute(v, "i", [(0, 1), (1, 2), (2, 0)]),
    "axis_size": lambda v: v * jax.lax.psum(1, "i"),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    """With a name for the axis, collectives see the whole batch."""
    collect = COLLECTIVES[name]
    got = sa.vmap(lambda w: collect(w.radius), in_axes=(spec(),), axis_name="i")(
        value()
    )
    assert_same(got, jax.vmap(collect, axis_name="i")(X))


def test_a_sum_over_the_batch_is_shared():
    """What a collective makes the same everywhere needs no output axis."""
    got = sa.vmap(
        lambda w: jax.lax.psum(w.radius, "i"),
        in_axes=(spec(),),
        out_axes=None,
        axis_name="i",
    )(value())
    np.testing.assert_array_equal(got, np.asarray(X).sum(0))


def test_spmd_axis_name():
    """The name of a mesh axis reaches the sharding constraints inside."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def constrained(run, **options):
        def inner(v):
            return jax.lax.with_sharding_constraint(v * 2, place)

        mapped = run(inner, spmd_axis_name="data", **options)
        return str(jax.make_jaxpr(mapped)(X))

    assert "data" in constrained(sa.vmap)
    assert_same(
        sa.vmap(lambda v: v * 2, spmd_axis_name="data")(X),
        jax.vmap(lambda v: v * 2, spmd_axis_name="data")(X),
    )


def test_options_by_position():
    """All arguments may be given in JAX's order."""
    got = sa.vmap(lambda v: jax.lax.psum(v, "i"), 0, 0, "i", N)(X)
    assert_same(got, jax.vmap(lambda v: jax.lax.psum(v, "i"), 0, 0, "i", N)(X))


def test_an_option_that_jax_does_not_have():
    """An unknown option is refused where it is written, with those that there are."""
    with pytest.raises(sa.BatchError, match="has no option 'axis_nam'") as e:
        sa.vmap(fn, axis_nam="i")
    assert "axis_name, axis_size, spmd_axis_name" in str(e.value)
    assert e.value.problems[0].path == "axis_nam"


def test_sum_match():
    """Newer versions of JAX can add up a shared output that varies."""
    if not hasattr(jax, "new_ref"):
        pytest.skip("this JAX has no sum_match")
    got = sa.vmap(lambda v: v, out_axes=None, sum_match=True)(X)
    np.testing.assert_array_equal(got, np.asarray(X).sum(0))


@pytest.mark.parametrize("size", [0, 1, 4])
def test_axis_size_with_nothing_mapped(size):
    """Where no leaf is mapped, the size says how many results there are."""
    got = sa.vmap(lambda v: v * 2, in_axes=None, axis_size=size)(W)
    want = jax.vmap(lambda v: v * 2, in_axes=None, axis_size=size)(W)
    assert_same(got, want)


@pytest.mark.parametrize("size", [0, 1])
def test_small_batches(size):
    """A batch of one or none is a batch."""
    assert_same(ours(X[:size]), theirs(X[:size]))


def test_without_arguments():
    """A function of nothing is mapped where its size is given."""
    got = sa.vmap(lambda: jnp.ones(2), axis_size=N)()
    np.testing.assert_array_equal(got, np.ones((N, 2)))


@pytest.mark.parametrize(
    ("call", "rows"),
    [
        (sa.vmap(lambda: 1.0), [("arguments", "no leaf")]),
        (lambda: sa.vmap(fn)([]), [("arguments", "no leaf")]),
        (lambda: sa.vmap(fn, in_axes=None)(W), [("wheel", "1 leaf, shared")]),
    ],
    ids=["no arguments", "no leaves", "all shared"],
)
def test_nothing_is_mapped(call, rows):
    """Without a mapped leaf the size is not known; the error says how to give it."""
    with pytest.raises(sa.BindError, match="the batch size is not known") as e:
        call()
    assert "axis_size=n" in str(e.value)
    assert [(p.path, p.there) for p in e.value.problems] == rows


@pytest.mark.parametrize("size", [-1, 2.0, True, "3", None.__class__])
def test_a_size_that_is_none(size):
    """A size that is no count is refused where it is written."""
    with pytest.raises(sa.BatchError, match="axis_size is the number of examples") as e:
        sa.vmap(fn, axis_size=size)
    assert e.value.problems[0].path == "axis_size"


@pytest.mark.parametrize("given", [3, "fn", sa.AxesBuilder(), sa.AxesBuilder().x])
def test_what_is_no_function(given):
    """What cannot be called is refused where it is written."""
    with pytest.raises(sa.BatchError, match="vmap maps a function") as e:
        sa.vmap(given)
    assert e.value.problems[0].path == "fn"


def test_a_shared_leaf_is_the_object_itself():
    """Inside the function a shared leaf is what was given: nothing traces it."""
    seen = []
    given = {"x": X, "w": np.ones(2), "n": 3, "f": np.sin, "s": "text"}
    axes = {"x": 0, "w": None, "n": None, "f": None, "s": None}
    sa.vmap(lambda v: seen.append(v) or v["x"], in_axes=(axes,))(given)
    (inside,) = seen
    assert all(inside[name] is given[name] for name in "wnfs")
    assert isinstance(inside["x"], jax.core.Tracer)


@pytest.mark.parametrize("out_axes", [0, sa.AUTO], ids=str)
def test_side_effects_happen_once(out_axes):
    """An eager call runs the function once, however the outputs are mapped."""
    seen = []
    sa.vmap(lambda v: seen.append(v) or (v, W), out_axes=out_axes)(X)
    assert len(seen) == 1


def test_an_exception_of_the_users_passes():
    """What the function raises is what the caller sees."""

    class Mine(Exception):  # noqa: N818
        pass

    mine = Mine("as it was")

    def fails(_):
        raise mine

    with pytest.raises(Mine, match="as it was") as e:
        sa.vmap(fails)(X)
    assert e.value is mine


def test_a_value_error_of_the_users_is_not_ours():
    """Not even errors of the classes that JAX and we use are touched."""

    def fails(_):
        message = "mine"
        raise ValueError(message)

    with pytest.raises(ValueError, match=r"^mine") as e:
        sa.vmap(fails)(X)
    assert not isinstance(e.value, sa.StagedAxesError)


def test_inputs_that_come_back():
    """A function may give back what it was given, mapped and shared."""
    given = value()
    out = sa.vmap(lambda w: (w, w), in_axes=(spec(),), out_axes=sa.AUTO)(given)
    for wheel in out:
        np.testing.assert_array_equal(wheel.radius, X)
        assert wheel.drag is given.drag
        assert wheel.label == "rear"


@pytest.mark.parametrize("cls", [Box, Strict, Eager, Fickle, Nested])
def test_no_class_is_built_with_axes(cls):
    """Classes that keep nothing but arrays, or turn ints around, map like any other."""
    made = sa.AxesBuilder(default=0)
    made.b = None
    got = sa.vmap(lambda o: o.a * o.b, in_axes=(made,))(cls(X, W))
    np.testing.assert_array_equal(got, np.asarray(X) * np.asarray(W))


def test_static_data_that_can_be_neither_hashed_nor_compared():
    """Static data is never looked at."""
    given = Wheel(X, W, label=Unhashable())
    axes = Wheel(0, None, label=Unhashable())
    got = sa.vmap(lambda w: w.radius * w.drag, in_axes=(axes,))(given)
    np.testing.assert_array_equal(got, np.asarray(X) * np.asarray(W))


def test_static_data_reaches_the_function():
    """The function sees the value's own static data, not that of the axes."""
    axes = Wheel(0, None, label="made early")
    assert sa.vmap(lambda w: w.label, in_axes=(axes,))(value()) == "rear"


@pytest.mark.parametrize(
    "x",
    [
        np.arange(3, dtype=np.int8),
        np.arange(3.0, dtype=np.float16),
        jnp.arange(3, dtype=jnp.bfloat16),
        np.arange(3).astype(jnp.bfloat16),
        np.arange(3).astype(jnp.int4),
        np.array([True, False, True]),
        np.arange(3) * 1j,
        np.zeros(3, jax.dtypes.float0),
        jnp.broadcast_to(jnp.asarray(1.5), (3,)),
        np.matrix([[1.0], [2.0], [3.0]]),
    ],
    ids=lambda x: f"{type(x).__name__}-{x.dtype.name}",
)
def test_arrays_of_every_dtype(x):
    """What JAX takes as an array is one here, and keeps dtype and weakness."""
    got = sa.vmap(lambda v: (v, x), out_axes=(0, None))(x)
    assert_same(got[0], jax.vmap(lambda v: v)(x))
    assert got[1] is x


def test_wide_numbers():
    """With 64 bits enabled nothing is narrowed."""
    from jax.experimental import enable_x64

    with enable_x64():
        x = np.arange(3.0)
        got = sa.vmap(lambda v: (v, v + 1, 2.5), out_axes=0)(x)
        assert_same(got, jax.vmap(lambda v: (v, v + 1, 2.5))(x))
        assert got[0].dtype == np.float64


@pytest.mark.parametrize(
    "x",
    [
        np.array([object()] * 3),
        np.array(["a", "b", "c"]),
        np.array([b"a", b"b", b"c"]),
        np.zeros(3, [("field", "f4")]),
        np.array(["2020-01-01"] * 3, "M8[D]"),
        np.arange(3, dtype="m8[s]"),
        np.arange(3, dtype=np.longdouble),
        np.ma.array([1.0, 2.0, 3.0]),
        "abc",
        jnp.sin,
        object(),
    ],
    ids=lambda x: getattr(getattr(x, "dtype", None), "name", type(x).__name__),
)
def test_what_jax_takes_for_no_array(x):
    """It passes where it is shared, and is named where it is mapped."""
    assert sa.vmap(lambda v: v["x"], in_axes=({"w": 0, "x": None},))(
        {"w": X, "x": x}
    ) is (x)
    with pytest.raises(sa.BindError, match="mapped but is no array") as e:
        sa.vmap(lambda v: v["w"])({"w": X, "x": x})
    (problem,) = e.value.problems
    assert (problem.kind, problem.path, problem.axis) == ("not-array", "v['x']", 0)
    assert "None" in problem.fix


class Wrapped:
    """An object that JAX would turn into an array if it were asked to."""

    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        """The array."""
        return self.x


def test_an_object_that_can_be_made_an_array():
    """It is an object: shared it passes, and JAX itself takes none to be mapped."""
    given = Wrapped(W)
    got = sa.vmap(lambda v, w: v * jnp.asarray(w.x), in_axes=(0, None))(X, given)
    np.testing.assert_array_equal(got, np.asarray(X) * np.asarray(W))
    with pytest.raises(sa.BindError, match="mapped but is no array"):
        sa.vmap(lambda w: w.x)(Wrapped(X))


def test_an_opaque_output_that_holds_a_tracer():
    """An object that would carry a tracer out of the mapping is named."""
    with pytest.raises(sa.BatchError, match="do not fit the output, in 1 place") as e:
        sa.vmap(lambda v: {"ok": v, "bad": Wrapped(v)})(X)
    (problem,) = e.value.problems
    assert (problem.path, problem.there) == ("output['bad']", "Wrapped")
    assert "holds a tracer" in problem.asked


class Hostile:
    """An object that fails at whatever it is asked."""

    def __getattr__(self, name):
        """Fail."""
        raise RuntimeError(name)

    def __eq__(self, other):
        """Fail."""
        raise RuntimeError

    def __hash__(self):
        """Fail."""
        raise RuntimeError

    def __repr__(self):
        """Fail."""
        raise RuntimeError


def test_a_hostile_object_passes():
    """A shared leaf may be anything, and is asked nothing."""
    hostile = Hostile()
    out = sa.vmap(lambda v, h: (v, h), in_axes=(0, None))(X, hostile)
    assert out[1] is hostile


def test_a_tracer_in_static_data_is_named():
    """A tracer that hides in static data is an error with the name of the field."""
    with pytest.raises(sa.BindError, match="1 static field holds a tracer") as e:
        jax.jit(lambda x: sa.vmap(lambda w: w.radius)(Wheel(X, X, label=x)))(1.0)
    (problem,) = e.value.problems
    assert (problem.kind, problem.path) == ("tracer", "w.label")


def test_what_contains_itself():
    """An argument that contains itself is named."""
    cyclic = {"x": X}
    cyclic["itself"] = cyclic
    with pytest.raises(sa.BindError, match="w contains itself, or is nested too deep"):
        sa.vmap(lambda v, w: v, in_axes=0)(X, cyclic)


def test_an_output_that_contains_itself():
    """So is an output."""
    cyclic = []
    cyclic.append(cyclic)
    with pytest.raises(sa.BatchError, match="output contains itself, or is nested too"):
        sa.vmap(lambda v: cyclic)(X)


def test_keys_that_have_no_order():
    """A dict with keys that cannot be sorted is named, and where it is."""
    with pytest.raises(sa.BindError, match="keys of a dict have no order") as e:
        sa.vmap(lambda v, w: v)(X, [{"a": {1: X, "b": X}}])
    (problem,) = e.value.problems
    assert (problem.path, problem.there) == ("w[0]['a']", "keys: int, str")


def test_a_function_that_flattens_badly_is_not_ours():
    """What a class of the user's raises when it is flattened passes."""

    class Bad:
        pass

    def flatten(_):
        message = "mine"
        raise ValueError(message)

    jax.tree_util.register_pytree_node(Bad, flatten, lambda *_: Bad())
    with pytest.raises(ValueError, match=r"^mine$"):
        sa.vmap(lambda v: v)(Bad())


def test_threads():
    """One mapped function may be called from several threads."""
    mapped = sa.vmap(fn, in_axes=(spec(),))
    want = np.asarray(theirs(X))
    failures = []

    def work():
        for _ in range(3):
            if not np.allclose(mapped(value()), want):
                failures.append("differs")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_builder_counts_when_it_is_called():
    """What is recorded after `sa.vmap` counts from the next call on."""
    late = sa.AxesBuilder(default=0)
    mapped = sa.vmap(lambda v: v["x"] * v["w"], in_axes=(late,))
    given = {"x": X, "w": W}
    with pytest.raises(sa.BindError, match="do not agree on the batch size"):
        mapped(given)
    late.w = None
    np.testing.assert_array_equal(mapped(given), np.asarray(X) * np.asarray(W))


def test_the_wrapper_looks_like_the_function():
    """Name, documentation and signature are those of the function."""
    mapped = sa.vmap(fn, in_axes=(spec(),))
    assert (mapped.__name__, mapped.__doc__) == (fn.__name__, fn.__doc__)
    assert mapped.__wrapped__ is fn
