"""Batches put together and taken apart: what comes out is what went in."""

import collections
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from jax.experimental import sparse

import staged_axes as sa
from value_trees import (
    Net,
    Strict,
    batch,
    decide,
    examples,
    kinds_and_bits,
    message,
    system,
    text,
    trees,
)


def nets(n=3):
    """Some networks."""
    return [Net(jnp.array([1.0, k]), jnp.array(k * 0.5)) for k in range(n)]


# Property ---------------------------------------------------------------------------


@given(trees(), st.integers(1, 4))
def test_stack_is_the_batch(tree, n):
    """Stacked values are what NumPy makes of their leaves one by one."""
    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    stacked = sa.stack(examples(tree, n), spec)
    assert kinds_and_bits(stacked) == kinds_and_bits(batch(tree, n))


@given(trees(), st.integers(1, 4))
def test_unstack_undoes_stack(tree, n):
    """What was stacked comes apart into the values that went in."""
    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    values = examples(tree, n)
    stacked = sa.stack(iter(values), spec)
    apart = spec.bind(stacked).unstack(stacked)
    assert [kinds_and_bits(v) for v in apart] == [kinds_and_bits(v) for v in values]


@given(trees(), st.integers(1, 4), st.data())
def test_take_gives_the_member(tree, n, data):
    """Example k of a batch is the value that was stacked as number k."""
    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    k = data.draw(st.integers(-n, n - 1))
    many = batch(tree, n)
    values = examples(tree, n)
    assert kinds_and_bits(spec.bind(many).take(many, k)) == kinds_and_bits(values[k])


@given(trees(), st.integers(1, 4), st.data())
def test_set_replaces_the_member(tree, n, data):
    """A batch with another example k is the stack of the list with another item k."""
    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    k = data.draw(st.integers(-n, n - 1))
    values = examples(tree, n + 1)
    new, values = values[-1], values[:-1]
    many = sa.stack(values, spec)
    values[k] = new
    changed = spec.bind(many).set(many, k, new)
    assert kinds_and_bits(changed) == kinds_and_bits(sa.stack(values, spec))


@given(trees(), st.integers(1, 4))
def test_broadcast_is_a_stack_of_equals(tree, n):
    """A value that is broadcast is the stack of n times the same value."""
    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    (value,) = examples(tree, 1)
    bound = spec.bind(batch(tree, 2))
    stacked = sa.stack([value] * n, spec)
    assert kinds_and_bits(bound.broadcast(value, n)) == kinds_and_bits(stacked)


@given(trees(), st.integers(1, 4))
def test_results_are_those_of_a_loop(tree, n):
    """What a function gives for a stacked batch is, bit for bit, what a loop gives."""

    def fn(value):
        return jax.tree.map(lambda x: jnp.asarray(x) * 3 - 1, value)

    spec = sa.AxesBuilder(default=None)
    decide(spec, tree, sa.record)
    values = examples(tree, n)
    many = sa.stack(values, spec)
    out = sa.vmap(fn, in_axes=(spec,), out_axes=spec)(many)
    loop = [fn(value) for value in values]
    apart = spec.bind(out).unstack(out)
    assert list(map(kinds_and_bits, apart)) == list(map(kinds_and_bits, loop))


# Together ---------------------------------------------------------------------------


def test_models_in_a_list_are_mapped_as_one():
    """Stacked models give, bit for bit, what a loop over the list gives."""

    def fn(net):
        return jnp.maximum(net.w.sum() + net.b, 0)

    spec = sa.AxesBuilder(default=0)
    out = sa.vmap(fn, in_axes=(spec,))(sa.stack(nets(), spec))
    assert np.array_equal(out, jnp.stack([fn(net) for net in nets()]))


@pytest.mark.parametrize(
    ("spec", "shape"),
    [(0, (4, 2)), (1, (2, 4)), (-1, (2, 4)), (-2, (4, 2)), (np.int64(1), (2, 4))],
    ids=str,
)
def test_axes_count_in_the_batch(spec, shape):
    """The axis of a decision is that of the batch, also where it is negative."""
    assert sa.stack([np.zeros(2)] * 4, spec).shape == shape


def test_all_that_says_axes_can_stack():
    """A bound record, an axes tree and a function serve as well as a builder."""
    values = [{"a": np.ones(2), "b": k} for k in range(3)]
    axes = {"a": None, "b": 0}
    spec = sa.AxesBuilder.from_tree(axes)
    bound = spec.bind(sa.stack(values, spec))
    for says in (
        spec,
        bound,
        axes,
        lambda x: 0 if np.result_type(x).kind == "i" else None,
    ):
        stacked = sa.stack(values, says)
        assert np.shape(stacked["b"]) == (3,)


def test_mounted_builders_count():
    """What another builder says at a place counts when values are stacked."""
    inner = sa.AxesBuilder(default=None)
    inner.x = 0
    spec = sa.AxesBuilder(default=None)
    spec.world = inner
    values = [{"world": {"x": k, "y": 7}} for k in range(3)]
    assert sa.stack(values, spec)["world"]["x"].tolist() == [0, 1, 2]


def test_a_decision_from_the_leaf_is_asked_about_the_batch():
    """A decision by the number of axes sees the leaf as it will be in the batch."""
    spec = sa.AxesBuilder(default=sa.per_leaf(lambda x: 0 if np.ndim(x) > 1 else None))
    values = [{"count": 7, "moment": np.full(2, k)} for k in range(3)]
    stacked = sa.stack(values, spec)
    assert stacked["moment"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert stacked["count"] == 7


def test_functions_among_the_leaves_are_shared():
    """Activation functions, strings and None pass through as they are."""
    spec = sa.AxesBuilder(default=sa.per_leaf(lambda x: 0 if eqx.is_array(x) else None))
    models = [
        eqx.nn.MLP(2, 1, 3, 1, key=key) for key in jax.random.split(jax.random.key(0))
    ]
    stacked = sa.stack(models, spec)
    assert stacked.activation is models[0].activation
    assert stacked.layers[0].weight.shape == (2, 3, 2)
    one = spec.bind(stacked).take(stacked, 1)
    assert np.array_equal(one.layers[1].weight, models[1].layers[1].weight)


def test_typed_keys():
    """Typed keys stay typed keys, in a batch and out of it."""
    keys = list(jax.random.split(jax.random.key(3), 3))
    spec = sa.AxesBuilder(default=0)
    stacked = sa.stack(keys, spec)
    bound = spec.bind(stacked)
    assert jnp.issubdtype(stacked.dtype, jax.dtypes.prng_key)
    assert kinds_and_bits(bound.take(stacked, -1)) == kinds_and_bits(keys[2])
    changed = bound.set(stacked, 0, keys[2])
    assert kinds_and_bits(changed) == kinds_and_bits(sa.stack(keys[2:] + keys[1:], 0))
    assert kinds_and_bits(bound.broadcast(keys[1], 2)[1]) == kinds_and_bits(keys[1])


def test_shared_leaves_are_the_same_objects():
    """What is shared is neither copied on the way in nor on the way out."""
    spec = sa.AxesBuilder(default=0)
    spec.b = None
    shared = jnp.arange(4.0)
    values = [{"a": np.ones(2), "b": x} for x in (shared, np.arange(4, dtype="f4"))]
    stacked = sa.stack(values, spec)
    assert stacked["b"] is shared
    assert spec.bind(stacked).take(stacked, 1)["b"] is shared


def test_numpy_is_taken_apart_without_copying():
    """A member of a NumPy batch is a view, and repeated arrays take no memory."""
    spec = sa.AxesBuilder(default=0)
    many = {"x": np.arange(6.0).reshape(3, 2)}
    bound = spec.bind(many)
    assert np.shares_memory(bound.take(many, 1)["x"], many["x"])
    one = {"x": np.arange(2.0)}
    repeated = bound.broadcast(one, 1000)["x"]
    assert np.shares_memory(repeated, one["x"])
    assert repeated.strides == (0, 8)


def test_numbers_keep_all_their_digits():
    """A Python float that was stacked comes back as the same double."""
    stacked = sa.stack([0.1, 0.2], 0)
    assert stacked.dtype == np.float64
    assert sa.AxesBuilder().bind(stacked).take(stacked, 0) == 0.1


def test_what_is_neither_is_shared_bit_for_bit():
    """Not-a-number equals itself, and the two zeros differ."""
    assert np.isnan(sa.stack([(0, np.nan), (1, np.nan)], (0, None))[1])
    with pytest.raises(sa.BindError, match=r"1 shared leaf is not the same"):
        sa.stack([(0, 0.0), (1, -0.0)], (0, None))


def test_more_values_than_one_concatenation():
    """Hundreds of JAX arrays are joined in groups, in order."""
    stacked = sa.stack([jnp.array([k, -k]) for k in range(150)], 1)
    assert np.array_equal(stacked, np.stack([np.arange(150), -np.arange(150)]))


def test_a_class_that_validates():
    """A class that refuses all but arrays is never built with anything else."""
    spec = sa.AxesBuilder(default=0)
    values = [Strict(np.arange(2) + k, "s") for k in range(2)]
    stacked = sa.stack(values, spec)
    bound = spec.bind(stacked)
    assert type(stacked) is Strict
    assert [one.x.tolist() for one in bound.unstack(stacked)] == [[0, 1], [1, 2]]
    assert bound.broadcast(values[0], 3).x.shape == (3, 2)
    assert bound.set(stacked, 0, values[1]).x.tolist() == [[1, 2], [1, 2]]


def test_under_jit():
    """Stacking and taking apart are traced as any other function."""
    spec = sa.AxesBuilder(default=0)

    @jax.jit
    def swap(a, b, k):
        many = sa.stack([a, b], spec)
        bound = spec.bind(many)
        return bound.take(many, k), bound.set(many, k, b).w

    one, changed = swap(*nets(2), 1)
    assert kinds_and_bits(one) == kinds_and_bits(nets(2)[1])
    assert changed.tolist() == [[1.0, 0.0], [1.0, 1.0]]


def test_examples_are_made_one_at_a_time():
    """Iterating finds faults at once, and makes an example when it is asked for."""
    spec = sa.AxesBuilder(default=0)
    many = sa.stack(nets(), spec)
    bound = spec.bind(many)
    with pytest.raises(sa.BindError, match="do not agree on the batch size"):
        bound.iterate(many.replace(b=jnp.ones(2)))
    walk = bound.iterate(many)
    assert next(walk).b == 0.0
    assert [float(net.b) for net in walk] == [0.5, 1.0]


def test_another_value_than_the_bound_one():
    """Static data and batch size may be other ones than when the record was bound."""
    spec = sa.AxesBuilder(default=0)
    bound = spec.bind(sa.stack(nets(), spec))
    other = sa.stack([net.replace(run="b") for net in nets(5)], spec)
    assert bound.take(other, 4).run == "b"
    assert len(bound.unstack(other)) == 5


def test_trained_agents_are_used_one_by_one():
    """Agents that were trained under `vmap` come apart into single ones that act."""

    def policy(agent, obs):
        return agent["w"] @ jnp.tanh(obs)

    agents = jax.vmap(lambda key: {"w": jax.random.normal(key, (2, 3))})(
        jax.random.split(jax.random.key(0), 4)
    )
    obs = jnp.arange(3.0)
    spec = sa.AxesBuilder(default=0)
    bound = spec.bind(agents)
    acts = sa.vmap(policy, in_axes=(spec, None))(agents, obs)
    one_by_one = [policy(agent, obs) for agent in bound.unstack(agents)]
    hand = [agents["w"][k] @ jnp.tanh(obs) for k in range(4)]
    assert np.array_equal(one_by_one, hand)
    np.testing.assert_allclose(acts, hand, rtol=1e-6)


# Mistakes ---------------------------------------------------------------------------


def test_static_data_that_differs_is_named():
    """Each static field that differs is named once, with both values."""
    values = [net.replace(run=f"run{k}") for k, net in enumerate(nets())]
    with pytest.raises(sa.BindError, match="static") as e:
        sa.stack(values, 0)
    assert text(e) == message("""
        1 static field is not the same in all values.

          value.run  'run1' in values[1]  'run0' in values[0]

          Fix: make it equal first, as in [dataclasses.replace(v, run=...) for v in \
values]; what differs from value to value belongs in a leaf
        """)
    (problem,) = e.value.problems
    assert (problem.kind, problem.path) == ("static-differs", "value.run")


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (1, 1.0, ("1.0 in values[1]", "1 in values[0]")),
        (1, True, ("True in values[1]", "1 in values[0]")),
        (np.arange(3), np.arange(3) + 1, ("i64[3]", "not equal to that in values[0]")),
        (("a", 1), ("a", 2), ("('a', 2)", "('a', 1)")),
        (len, max, ("function max", "function len")),
    ],
    ids=["int-float", "int-bool", "arrays", "tuples", "functions"],
)
def test_static_data_is_compared_with_its_types(one, other, shown):
    """Equal is not enough: static data has to be of one type and content."""
    values = [Net(np.ones(1), np.ones(1), run) for run in (one, other)]
    with pytest.raises(sa.BindError, match="1 static field") as e:
        sa.stack(values, 0)
    (problem,) = e.value.problems
    assert shown[0] in problem.there
    assert shown[1] in problem.asked


def test_equal_static_arrays_are_no_difference():
    """Static arrays that JAX cannot compare are compared by content."""
    values = [Net(np.ones(1), np.ones(1), np.arange(3)) for _ in range(2)]
    assert sa.stack(values, 0).w.shape == (2, 1)


def test_the_first_difference_in_structure_is_named():
    """Where values are built differently, the first such node is named."""
    one, other = system(), system()
    other = other.replace(link=other.link.replace(inertia={"pos": 1.0}))
    with pytest.raises(sa.BindError, match="not built alike") as e:
        sa.stack([one, one, other], 0)
    assert text(e) == message("""
        the values are not built alike.

          value.link.inertia  dict with pos in values[2]  Inertia with mass, pos \
in values[0]

          Fix: build all of them in the same way; what is absent in some can be an \
array of zeros
        """)
    assert e.value.problems[0].kind == "alike"


@pytest.mark.parametrize(
    ("one", "other", "there", "asked"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, "dict with a in", "dict with b, a in"),
        ([1, 2], [1, 2, 3], "list of 3 in", "list of 2 in"),
        ([1, 2], (1, 2), "tuple of 2 in", "list of 2 in"),
        ({"a": None}, {"a": 1.0}, "float in", "None in"),
    ],
    ids=["name", "length", "class", "none"],
)
def test_differences_in_structure(one, other, there, asked):
    """Names, lengths, classes, and None in place of something are told apart."""
    with pytest.raises(sa.BindError, match="not built alike") as e:
        sa.stack([one, other], 0)
    (problem,) = e.value.problems
    assert problem.there == f"{there} values[1]"
    assert problem.asked == f"{asked} values[0]"


def test_a_shared_leaf_that_differs():
    """A shared leaf has to be the same in all values; every such leaf is named."""
    spec = sa.AxesBuilder(default=0)
    spec.b = None
    values = [*nets(1), nets(2)[1]]
    with pytest.raises(sa.BindError, match="shared") as e:
        sa.stack(values, spec)
    assert text(e) == message("""
        1 shared leaf is not the same in all values.

          value.b  f32[] in values[1]  shared, but differs from values[0]  LINE

          Fix: to map it:  spec.b = 0
        """)
    (problem,) = e.value.problems
    assert (problem.kind, problem.path) == ("shared-differs", "value.b")
    assert problem.file == __file__


def test_shapes_and_dtypes_that_differ():
    """Mapped leaves have one shape and one dtype; what differs is shown from both."""
    values = [(np.ones(2), 1), (np.ones(3), 1.0)]
    with pytest.raises(sa.BindError, match="shape and dtype") as e:
        sa.stack(values, 0)
    assert text(e) == message("""
        2 mapped leaves do not have one shape and dtype in all values.

          value[0]  f64[3] in values[1]  f64[2] in values[0]  spec=0  LINE
          value[1]  float in values[1]   int in values[0]     spec=0  LINE

          Fix: give all of them one shape and one dtype
        """)


def test_all_that_is_wrong_at_once():
    """Faults of the record and of the values are in one error."""
    spec = sa.AxesBuilder(default=0)
    spec.b = None
    spec.d = 1
    spec.x = None
    values = [{"a": np.ones(k), "b": k, "c": "text", "d": k} for k in (1, 2)]
    with pytest.raises(
        sa.BindError, match="1 leaf is mapped but is no array; 1 leaf does"
    ) as e:
        sa.stack(values, spec)
    kinds = {p.path: p.kind for p in e.value.problems}
    assert kinds == {
        "spec.x = None": "unknown",
        "value['a']": "member",
        "value['b']": "shared-differs",
        "value['c']": "not-array",
        "value['d']": "axis",
    }


def test_a_shared_tracer_cannot_be_compared():
    """Under `jit` nobody knows whether two shared arrays are the same."""
    with pytest.raises(sa.BindError, match="traced, so that nobody can compare it"):
        jax.jit(lambda a, b: sa.stack([(a, a), (b, b)], (0, None)))(1.0, 1.0)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "there is no value to stack, so nothing says what the batch is built"),
        (iter(()), "there is no value to stack, so nothing says what the batch is"),
        ({"a": 1}, "stack takes several values, as a list, not a dict."),
        ("text", "stack takes several values, as a list, not a str."),
        (nets()[0], "stack takes several values, as a list, not a Net."),
    ],
    ids=["none", "used-up", "dict", "text", "one-value"],
)
def test_no_values(values, sentence):
    """Nothing, and what is no row of values, cannot be stacked."""
    with pytest.raises(sa.BindError, match=sentence) as e:
        sa.stack(values, 0)
    assert e.value.problems[0].kind == "argument"


def test_nothing_mapped():
    """Values that share everything make no batch."""
    with pytest.raises(sa.BindError, match="no leaf is mapped") as caught:
        sa.stack([1.0, 1.0], None)
    assert str(caught.value).endswith("Fix: map something: is a path misspelt?")
    assert caught.value.problems[0].kind == "nothing-mapped"


def test_a_decision_that_means_two_things():
    """A decision that is another one for the batch than for an example is refused."""
    seen = []
    spec = sa.AxesBuilder(default=0)
    spec.y = sa.per_leaf(lambda leaf: seen.append(leaf) or (len(seen) - 1 or None))
    with pytest.raises(sa.BindError, match="another one for the batch") as e:
        sa.stack([{"x": 1.0, "y": np.ones((2, 2))}] * 2, spec)
    assert text(e) == message("""
        1 decision is another one for the batch than for one example.

          value['y']  f64[2,2]  axis 1 in the batch, but shared for one example  LINE

          Fix: decide by the path: spec['y'] = 1
        """)


@pytest.mark.parametrize("k", [3, -4, 10**9], ids=str)
def test_no_such_member(k):
    """An example that is not there is an error of the package and an IndexError."""
    spec = sa.AxesBuilder(default=0)
    many = sa.stack(nets(), spec)
    with pytest.raises(sa.MemberError, match="in a batch of 3") as e:
        spec.bind(many).take(many, k)
    assert isinstance(e.value, IndexError)
    assert text(e) == message(f"""
        the number of an example is an int from -3 to 2 in a batch of 3.

          k  {k}

          Fix: bound.unstack(batched) gives all of them
        """)


@pytest.mark.parametrize("k", [True, 1.0, "1", None, np.ones(2, int)], ids=str)
def test_what_is_no_number_of_a_member(k):
    """Only an int, also one of NumPy's or JAX's, is the number of an example."""
    spec = sa.AxesBuilder(default=0)
    many = sa.stack(nets(), spec)
    with pytest.raises(sa.MemberError, match="the number of an example is an int"):
        spec.bind(many).take(many, k)


@pytest.mark.parametrize("k", [np.int32(1), np.array(1), jnp.array(-2)], ids=repr)
def test_numbers_of_members(k):
    """An int of NumPy's or JAX's is as good as one of Python's."""
    spec = sa.AxesBuilder(default=0)
    many = sa.stack(nets(), spec)
    assert float(spec.bind(many).take(many, k).b) == 0.5


@pytest.mark.parametrize("n", [0, -1, True, 2.0, None], ids=str)
def test_no_number_of_examples(n):
    """A value is broadcast to at least one example."""
    spec = sa.AxesBuilder(default=0)
    bound = spec.bind(sa.stack(nets(), spec))
    with pytest.raises(sa.BindError, match="the number of examples in a batch is an"):
        bound.broadcast(nets()[0], n)


def test_a_new_member_that_does_not_fit():
    """A new example has the shapes of the others and shares what they share."""
    spec = sa.AxesBuilder(default=0)
    spec.b = None
    many = Net(jnp.ones((3, 2)), jnp.ones(4))
    with pytest.raises(sa.BindError, match="the same in all values") as e:
        spec.bind(many).set(many, 0, Net(np.ones(3), np.zeros(4, "f4")))
    assert text(e) == message("""
        1 mapped leaf does not have one shape and dtype in all \
values; 1 shared leaf is not the same in all values.

          value.w  f64[3] in the new member  f32[2] for each example of the batch  \
default  LINE
          value.b  f32[4] in the new member  shared, but differs from the batch    LINE

          Fix: give it the shape and the kind of numbers of one example
               to map it:  spec.b = 0
        """)


def test_a_new_member_of_another_kind_of_numbers():
    """A float is not put among ints, where it would lose its digits in silence."""
    spec = sa.AxesBuilder(default=0)
    with pytest.raises(sa.BindError, match=r"f32\[\] in the new member  i32\[\] for"):
        spec.bind(jnp.arange(3)).set(jnp.arange(3), 0, jnp.array(0.5))


def test_a_new_member_that_is_built_differently():
    """Static data of a new example has to be that of the batch."""
    spec = sa.AxesBuilder(default=0)
    many = sa.stack(nets(), spec)
    with pytest.raises(sa.BindError, match="'b' in the new member  'a' in the batch"):
        spec.bind(many).set(many, 0, nets()[0].replace(run="b"))


def sparse_pair():
    """Two sparse matrices as one batch."""
    dense = np.array([[[0, 1.0, -5], [2, 0, 4]], [[9, 0, 0], [0, -7, 1]]])
    return sparse.BCOO.fromdense(dense, n_batch=1)


@pytest.mark.parametrize(
    "act",
    [
        lambda bound, m: bound.take(m, 1),
        lambda bound, m: bound.unstack(m),
        lambda bound, m: bound.set(m, 0, m),
        lambda bound, m: bound.broadcast(m, 2),
        lambda bound, m: sa.stack([m, m], 0),
    ],
    ids=["take", "unstack", "set", "broadcast", "stack"],
)
def test_sparse_matrices_are_refused(act):
    """A BCOO array is not cut leaf by leaf, which would leave its shape as it was."""
    many = sparse_pair()
    bound = sa.AxesBuilder(default=0).bind(many)
    with pytest.raises(sa.BindError, match="cannot be taken apart") as e:
        act(bound, many)
    assert "BCOO keeps its shape as static data (a static shape)" in str(e.value)
    assert e.value.problems[0].kind == "whole"


def test_shared_sparse_matrices_pass():
    """A shared BCOO array is compared by content and kept."""
    spec = sa.AxesBuilder(default=0)
    spec.m = None
    values = [{"m": sparse_pair(), "x": k} for k in range(2)]
    stacked = sa.stack(values, spec)
    assert stacked["m"] is values[0]["m"]
    assert spec.bind(stacked).take(stacked, 1)["m"] is values[0]["m"]


def test_shapes_alone_cannot_be_taken_apart():
    """There is no example in a batch that is abstract."""
    many = jax.ShapeDtypeStruct((3, 2), jnp.float32)
    bound = sa.AxesBuilder(default=0).bind(many)
    with pytest.raises(sa.BindError, match="it is abstract: there is no data in it"):
        bound.take(many, 0)
    one = jax.eval_shape(lambda batch: bound.take(batch, 0), many)
    assert one.shape == (2,)


def test_errors_can_be_pickled():
    """An error keeps its data on its way to another process."""
    many = sa.stack(nets(), 0)
    with pytest.raises(sa.MemberError, match="3") as e:
        sa.AxesBuilder().bind(many).take(many, 3)
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.problems) == (str(e.value), e.value.problems)


def test_named_tuples_and_ordered_dicts():
    """Containers of the standard library keep their class."""
    pair = collections.namedtuple("pair", "a b")
    stacked = sa.stack([pair(k, collections.OrderedDict(z=k, y=0)) for k in (1, 2)], 0)
    assert stacked.a.tolist() == [1, 2]
    assert list(stacked.b) == ["z", "y"]


# Nothing mapped -----------------------------------------------------------------


def test_a_batch_in_which_nothing_is_mapped():
    """Where the size was given, examples can be had as from any batch."""
    spec = sa.AxesBuilder(default=None)
    value = {"x": np.arange(3)}
    bound = spec.bind(value, axis_size=2)
    assert len(bound.unstack(value)) == 2
    assert bound.take(value, 1)["x"] is value["x"]
    assert bound.broadcast(value, 5)["x"] is value["x"]
    assert bound.set(value, 0, value)["x"] is value["x"]


# Numbers that do not fit --------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "part"),
    [
        (np.zeros(3, np.int8), np.int64(300)),
        (jnp.zeros(3, jnp.int8), 300),
        (np.zeros(3, np.float16), np.float32(1e6)),
        (jnp.zeros(3, jnp.bfloat16), np.float64(1e39)),
    ],
    ids=["int8", "int8 of JAX", "float16", "bfloat16"],
)
def test_numbers_that_are_too_large(batch, part):
    """A number that the dtype of the batch cannot hold is refused, not wrapped."""
    bound = sa.AxesBuilder(default=0).bind(batch)
    with pytest.raises(sa.BindError, match="a number in it is too large") as caught:
        bound.set(batch, 0, part)
    (problem,) = caught.value.problems
    assert (problem.kind, problem.path) == ("member", "value")


def test_numbers_that_are_rounded():
    """The new example takes the dtype of the batch, as far as that goes."""
    bound = sa.AxesBuilder(default=0).bind(np.zeros(2, np.float32))
    changed = bound.set(np.zeros(2, np.float32), 1, np.float64(0.1))
    np.testing.assert_array_equal(changed, np.array([0, 0.1], np.float32))


def test_keys_of_another_kind():
    """A key of another implementation is not of the kind of the batch."""
    keys = jax.random.split(jax.random.key(0), 3)
    bound = sa.AxesBuilder(default=0).bind(keys)
    with pytest.raises(sa.BindError, match="give it the shape and the kind") as caught:
        bound.set(keys, 0, jax.random.key(1, impl="rbg"))
    (problem,) = caught.value.problems
    assert problem.kind == "member"
