"""Domain randomisation: what the wrappers of Brax and MuJoCo Playground are given."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

import staged_axes as sa
from value_trees import kinds_and_bits, system


def draw(model, rng):
    """Another position and mass for each key, as recipes of the playground do it."""

    @jax.vmap
    def one(key):
        near, far = jax.random.split(key)
        inertia = model.link.inertia
        return {
            "link.inertia.pos": inertia.pos + jax.random.normal(near, (3,)),
            "link.inertia.mass": inertia.mass * jax.random.uniform(far),
        }

    return one(rng)


def keys(seed, n=4):
    """A key for each world."""
    return jax.random.split(jax.random.key(seed), n)


def fn(s):
    """What is computed of one world."""
    return s.link.inertia.pos * s.link.inertia.mass * s.dt


# Without an environment -------------------------------------------------------------


def test_model_and_axes():
    """The function gives the varied model, and axes that `jax.vmap` takes for it."""
    spec = sa.AxesBuilder(default=None)
    randomise = sa.randomization_fn(spec, draw)
    model_v, in_axes = randomise(system(), keys(0))
    out = jax.vmap(fn, in_axes=[in_axes])(model_v)
    arrays = draw(system(), keys(0))
    loop = [
        arrays["link.inertia.pos"][k]
        * arrays["link.inertia.mass"][k]
        * jnp.float32(0.01)
        for k in range(4)
    ]
    assert np.array_equal(out, loop)
    assert (in_axes.damping, in_axes.link.inertia.mass) == (None, 0)


def test_the_model_of_the_wrapper_counts():
    """Each call binds to the model that it is given, whatever its static data."""
    randomise = sa.randomization_fn(sa.AxesBuilder(default=None), draw)
    randomise(system(), keys(0))
    _, in_axes = randomise(system(("a", "b"), 0.5), keys(0))
    assert (in_axes.link.names, in_axes.dt) == (("a", "b"), 0.5)


def test_the_line_that_decides():
    """Who decides is the stage and line that made the function, not the wrapper."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("randomise"):
        randomise = sa.randomization_fn(spec, draw)
    randomise(system(), keys(0))
    decisions = spec.__record__.entries().decisions
    assert {(d.stage.name, d.source.file) for d in decisions} == {
        ("randomise", __file__)
    }


def test_keywords_go_through():
    """Brax calls with the keys by name."""
    spec = sa.AxesBuilder(default=None)
    randomise = functools.partial(sa.randomization_fn(spec, draw), rng=keys(0, 3))
    assert randomise(system())[0].link.inertia.mass.shape == (3,)


def test_early_decisions_hold():
    """What the record maps and the draw forgets is an error."""
    spec = sa.AxesBuilder(default=None)
    spec.damping = 0
    randomise = sa.randomization_fn(spec, draw)
    with pytest.raises(sa.BindError, match="1 leaf is mapped, but was given no array"):
        randomise(system(), keys(0))


def test_drawn_again_without_tracing_again():
    """Keys are traced, so that one program serves every draw."""
    spec = sa.AxesBuilder(default=None)
    randomise = sa.randomization_fn(spec, draw)
    traces = []

    @jax.jit
    def run(rng):
        traces.append(rng)
        model_v, in_axes = randomise(system(), rng)
        return jax.vmap(fn, in_axes=[in_axes])(model_v)

    first, second = run(keys(0)), run(keys(1))
    assert len(traces) == 1
    assert not np.array_equal(first, second)


def test_an_environment_that_keeps_its_model():
    """Worlds get the model as an argument, so no tracer stays in the environment.

    Source: https://github.com/google/brax/issues/609
    """

    class Env:
        def __init__(self, model):
            self.model = model

        def reset(self):
            return fn(self.model)

    env = Env(system())
    spec = sa.AxesBuilder(default=None)
    randomise = sa.randomization_fn(spec, draw)
    outs = []
    for seed in range(2):
        model_v, _ = randomise(env.model, keys(seed))
        reset = sa.vmap(lambda model: Env(model).reset(), in_axes=(spec,))
        outs.append(jax.jit(reset)(model_v))
        for k, one in enumerate(spec.bind(model_v).iterate(model_v)):
            np.testing.assert_allclose(outs[-1][k], Env(one).reset(), rtol=1e-6)
    assert kinds_and_bits(env.model) == kinds_and_bits(system())


# With the wrappers themselves -------------------------------------------------------

XML = """
<mujoco>
  <worldbody>
    <body name="cart">
      <joint name="slider" type="slide" axis="1 0 0"/>
      <geom name="cart" type="box" size="0.2 0.15 0.1" mass="1"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom name="pole" type="capsule" fromto="0 0 0 0 0 1" size="0.05" mass="0.1"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


@struct.dataclass
class State:
    """As much of an environment's state as the wrappers need."""

    obs: jax.Array
    reward: jax.Array
    done: jax.Array
    info: dict = struct.field(default_factory=dict)


def fall(mass, friction, action=0.0):
    """Some arithmetic that stands for the physics: what counts is what it reads."""
    return jnp.sin(mass * 3.0).sum() + friction.sum() + action


def brax_env():
    """An environment whose `sys` is a real `brax.base.System`."""
    base = importlib.import_module("brax.envs.base")
    mjcf = importlib.import_module("brax.io.mjcf")

    class Cart(base.Env):
        def __init__(self):
            self.sys = mjcf.loads(XML)

        def reset(self, rng):
            del rng
            obs = fall(self.sys.link.inertia.mass, self.sys.geom_friction)
            return State(obs, jnp.zeros(()), jnp.zeros(()))

        def step(self, state, action):
            mass, friction = self.sys.link.inertia.mass, self.sys.geom_friction
            return state.replace(obs=state.obs + fall(mass, friction, action))

        observation_size = action_size = 1
        backend = "generalized"

    return Cart()


def playground_env():
    """An environment whose `mjx_model` is a real `mjx.Model`."""
    mujoco = importlib.import_module("mujoco")
    mjx = importlib.import_module("mujoco.mjx")
    mjx_env = importlib.import_module("mujoco_playground._src.mjx_env")

    class Cart(mjx_env.MjxEnv):
        def __init__(self):
            self._mjx_model = mjx.put_model(mujoco.MjModel.from_xml_string(XML))

        def reset(self, rng):
            del rng
            obs = fall(self._mjx_model.body_mass, self._mjx_model.geom_friction)
            return State(obs, jnp.zeros(()), jnp.zeros(()))

        def step(self, state, action):
            model = self._mjx_model
            out = fall(model.body_mass, model.geom_friction, action)
            return state.replace(obs=state.obs + out)

        xml_path = action_size = mj_model = None
        mjx_model = property(lambda self: self._mjx_model)

    return Cart()


def brax_draw(sys, rng):
    """Masses and one friction for each world."""

    @jax.vmap
    def one(key):
        scale = jax.random.uniform(key, minval=0.5, maxval=2.0)
        return {
            "link.inertia.mass": sys.link.inertia.mass * scale,
            "geom_friction": sys.geom_friction.at[0, 0].set(scale),
        }

    return one(rng)


def playground_draw(model, rng):
    """The same for MJX."""

    @jax.vmap
    def one(key):
        scale = jax.random.uniform(key, minval=0.5, maxval=2.0)
        return {
            "body_mass": model.body_mass * scale,
            "geom_friction": model.geom_friction.at[0, 0].set(scale),
        }

    return one(rng)


SIDES = {
    "brax": (
        "brax.envs.wrappers.training",
        "DomainRandomizationVmapWrapper",
        brax_env,
        brax_draw,
        lambda env: env.sys,
        "sys",
    ),
    "playground": (
        "mujoco_playground._src.wrapper",
        "BraxDomainRandomizationVmapWrapper",
        playground_env,
        playground_draw,
        lambda env: env.mjx_model,
        "_mjx_model",
    ),
}


@pytest.fixture(params=SIDES)
def side(request):
    """A wrapper of each library, with an environment for it."""
    module, name, make, to_draw, model_of, slot = SIDES[request.param]
    package = module.partition(".")[0]
    pytest.importorskip(package, reason=f"{package} is not installed")
    wrapper = getattr(importlib.import_module(module), name)
    return wrapper, make(), to_draw, model_of, slot


def test_the_wrapper_is_the_loop(side):
    """The wrapped environment gives, world by world, what the plain one gives."""
    wrapper, env, to_draw, model_of, slot = side
    spec = sa.AxesBuilder(default=None)
    randomise = sa.randomization_fn(spec, to_draw)
    wrapped = wrapper(env, functools.partial(randomise, rng=keys(0)))
    actions = jnp.arange(4.0)
    out = wrapped.step(wrapped.reset(keys(7)), actions)

    model = model_of(env)
    model_v, _ = randomise(model, keys(0))
    for k, one in enumerate(spec.bind(model_v, like=model).iterate(model_v)):
        setattr(env, slot, one)
        plain = env.step(env.reset(None), actions[k])
        np.testing.assert_allclose(out.obs[k], plain.obs, rtol=1e-6)
    assert len(set(out.obs.tolist())) == 4


def test_a_reset_that_draws_again_is_compiled_once(side):
    """A wrapper that is made inside the program draws anew at each reset."""
    wrapper, env, to_draw, model_of, _ = side
    spec = sa.AxesBuilder(default=None)
    randomise = sa.randomization_fn(spec, to_draw)
    before = kinds_and_bits(model_of(env))
    traces = []

    @jax.jit
    def reset(draws, rng):
        traces.append(draws)
        return wrapper(env, functools.partial(randomise, rng=draws)).reset(rng).obs

    first, second = reset(keys(0), keys(7)), reset(keys(1), keys(7))
    assert len(traces) == 1
    assert not np.array_equal(first, second)
    for out, seed in ((first, 0), (second, 1)):
        fresh = wrapper(env, functools.partial(randomise, rng=keys(seed)))
        np.testing.assert_allclose(out, fresh.reset(keys(7)).obs, rtol=1e-6)
    assert kinds_and_bits(model_of(env)) == before


@pytest.mark.parametrize(
    ("spec", "draw", "path"),
    [
        (0, lambda model: {}, "spec"),
        (sa.AxesBuilder().w, lambda model: {}, "spec"),
        (sa.AxesBuilder(), None, "draw"),
    ],
    ids=["int", "place", "draw"],
)
def test_arguments_that_mean_nothing(spec, draw, path):
    """They are refused where the function is made, not where a wrapper calls it."""
    text = "randomization_fn takes a builder and a function"
    with pytest.raises(sa.RecordError, match=text) as caught:
        sa.randomization_fn(spec, draw)
    assert caught.value.problems[0].path == path
