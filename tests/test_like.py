"""`like`: mapped leaves have the shape of one example with the batch axis put in."""

import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa
from value_trees import message, system, text


def positions(n=4):
    """Another position for each of n systems."""
    return jnp.arange(3.0 * n).reshape(n, 3)


def shared_by_mistake():
    """A system of which a field has a batch axis that the record does not know of."""
    one = system()
    link = one.link.replace(inertia=one.link.inertia.replace(pos=positions()))
    return one.replace(link=link, damping=jnp.ones((4, 2, 2)))


def spec_of(*places):
    """A builder that maps these places and shares the rest."""
    spec = sa.AxesBuilder(default=None)
    for place in places:
        sa.record(spec, place, 0)
    return spec


def fn(s):
    """Something that broadcasts without a word where a batch axis is forgotten."""
    return s.damping.sum() + s.link.inertia.pos


WAYS = {
    "bind": lambda spec, value, like: spec.bind(value, like=like),
    "vmap": lambda spec, value, like: sa.vmap(fn, spec, like=like)(value),
    "batch": lambda spec, value, like: sa.batch(fn, spec, like=like)(value),
    "method": lambda spec, value, like: spec.batch(fn, like=like)(value),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_forgotten_decision(way):
    """A field with a batch axis that nobody decided is found, with the fix."""
    spec = spec_of("damping")
    with pytest.raises(sa.BindError, match="the template asks for") as e:
        WAYS[way](spec, shared_by_mistake(), system())
    root = "value" if way == "bind" else "s"
    assert text(e) == message(f"""
        1 leaf does not have the shape that the template asks for.

          {root}.link.inertia.pos  f32[4,3]  shared: the template (3,) asks for (3,)  \
default  LINE

          Fix: it has a batch axis: spec.link.inertia.pos = 0
        """)
    (problem,) = e.value.problems
    assert (problem.kind, problem.shape) == ("shape", (4, 3))


@pytest.mark.parametrize("way", WAYS)
def test_what_fits_passes(way):
    """Where the record and one example agree with the batch, nothing is said."""
    spec = spec_of("damping", "link.inertia.pos")
    out = WAYS[way](spec, shared_by_mistake(), system(("other",), 0.5))
    if way != "bind":
        assert np.array_equal(out, 4.0 + positions())


def test_one_entry_for_each_argument():
    """A tuple of axes has a tuple of examples, None where nothing is checked."""
    spec = spec_of("damping")
    value, x = shared_by_mistake(), jnp.ones((4, 3))

    def both(s, x):
        return s.damping.sum() + x.sum()

    for like in [(None, jnp.ones(3)), [None, None], None]:
        assert sa.batch(both, (spec, 0), like=like)(value, x).shape == (4,)
    with pytest.raises(
        sa.BindError, match=r"x  f32\[4,3\]  axis 0: the template \(2,\)"
    ):
        sa.vmap(both, (spec, 0), like=(None, jnp.ones(2)))(value, x)
    with pytest.raises(sa.BindError, match=r"s\.link\.inertia\.pos"):
        sa.vmap(both, (spec, 0), like=(system(), None))(value, x)


def test_examples_by_name():
    """A dict of axes has a dict of examples, for positional and keyword arguments."""
    spec = spec_of("damping")

    def both(x, s=None):
        return s.damping.sum() + x.sum()

    fast = sa.batch(both, {"x": 0, "s": spec}, like={"s": system()})
    with pytest.raises(sa.BindError, match=r"s\.link\.inertia\.pos"):
        fast(jnp.ones((4, 3)), s=shared_by_mistake())


def test_static_arguments_need_no_example():
    """Where static arguments have no entry in the axes, they have none here either."""
    spec = spec_of("damping", "link.inertia.pos")

    def scaled(factor, s):
        return fn(s) * factor

    fast = sa.batch(scaled, (spec,), static_argnames="factor", like=(system(),))
    assert fast(2, shared_by_mistake()).shape == (4, 3)
    with pytest.raises(sa.BindError, match="the template"):
        fast(2, shared_by_mistake().replace(damping=jnp.ones((4, 3, 2))))


def test_a_shape_that_comes_later_is_checked_too():
    """A program that is at hand does not hide a value of another shape."""
    spec = spec_of("damping", "link.inertia.pos")
    fast = sa.batch(fn, spec, like=system())
    good = shared_by_mistake()
    fast(good)
    with pytest.raises(
        sa.BindError, match=r"the template \(2, 2\) asks for \(4, 2, 2\)"
    ):
        fast(good.replace(damping=jnp.ones((4, 3, 2))))
    unchecked = sa.batch(fn, spec)
    wide = good.replace(damping=jnp.ones((4, 3, 2)))
    assert unchecked(wide).shape == (4, 3)
    with pytest.raises(sa.BindError, match="the template"):
        fast(wide)


def test_one_example_for_two_arguments():
    """One example stands for the only argument and for no more."""
    with pytest.raises(sa.BindError, match="there are 2 positional arguments") as e:
        sa.vmap(lambda a, b: a + b, like=jnp.ones(2))(
            jnp.ones((3, 2)), jnp.ones((3, 2))
        )
    assert text(e) == message("""
        like is the value of the only argument, and there are 2 positional arguments.

          like  an f32[2]

          Fix: one entry for each:  in_axes=(0, 0), like=(value, None)
        """)


@pytest.mark.parametrize(
    ("in_axes", "like", "form"),
    [
        ((0, 0), 1.0, "a tuple of 2 values, one for each argument"),
        ((0, 0), (1.0,), "a tuple of 2 values, one for each argument"),
        ((0,), {"a": 1.0}, "a tuple of 1 value, one for each argument"),
        ({"a": 0}, (1.0,), "a dict with some of the same names"),
        ({"a": 0}, {"b": 1.0}, "a dict with some of the same names"),
    ],
    ids=["value", "short", "dict", "tuple", "other-name"],
)
def test_examples_in_another_form(in_axes, like, form):
    """Examples that do not have the form of the axes are refused at once."""
    with pytest.raises(sa.RecordError, match="like has the form of in_axes") as e:
        sa.vmap(lambda a, b=0: a, in_axes, like=like)
    assert str(e.value).split("\n", maxsplit=1)[0].endswith(f"here {form}.")


@pytest.mark.parametrize(
    "use",
    [
        lambda spec, value, one: spec.bind(value, like=one),
        lambda spec, value, one: sa.vmap(str, spec, like=one)(value),
    ],
    ids=["bind", "vmap"],
)
def test_a_shape_beside_other_problems(use):
    """A misspelt place does not hide a leaf that is not like the example."""
    spec = sa.AxesBuilder(default=0)
    spec.ragnge = None
    one = {"mass": np.ones(2), "range": np.ones(3)}
    value = {"mass": np.ones((4, 5)), "range": np.ones((4, 3))}
    with pytest.raises(sa.BindError, match="ragnge") as caught:
        use(spec, value, one)
    kinds = [problem.kind for problem in caught.value.problems]
    assert kinds == ["unknown", "shape"]
