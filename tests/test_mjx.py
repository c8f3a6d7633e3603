"""A real `mjx.Model`: one record serves it after every edit, and mistakes are named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa

mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
mjx = pytest.importorskip("mujoco.mjx", reason="mujoco-mjx is not installed")

WORLDS = 3
SWING = """
<mujoco model="swing">
  <option timestep="0.01" iterations="4" ls_iterations="4" solver="CG">
    <flag eulerdamp="disable"/>
  </option>
  <worldbody>
    <body name="arm" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" frictionloss="0.02" damping="0.01"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="0.6"
            friction="0.9 0.01 0.001"/>
      <body name="hand" pos="0.4 0 0">
        <joint name="wrist" axis="0 1 0" frictionloss="0.01"/>
        <geom name="hand" type="box" size="0.05 0.03 0.02" pos="0.05 0 0" mass="0.2"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="pull" joint="shoulder" gear="2"/></actuator>
</mujoco>
"""


def decided():
    """Three decisions, made before there is any model."""
    spec = sa.AxesBuilder(default=None)
    spec.geom_friction = 0
    spec.body_mass = 0
    spec.dof_frictionloss = 0
    return spec


def edited(change=lambda model: None, xml=SWING):
    """The model after an edit of the XML or of the loaded model."""
    model = mujoco.MjModel.from_xml_string(xml)
    change(model)
    return mjx.put_model(model)


def changes(**fields):
    """An edit that sets fields of the options."""

    def change(model):
        for name, value in fields.items():
            setattr(model.opt, name, value)

    return change


def lighter(model):
    """An edit of array leaves alone."""
    model.body_mass[1] = 0.3
    model.opt.timestep = 0.005


def without_frictionloss(model):
    """An edit of a leaf on which the choice of the solver's rows depends."""
    model.dof_frictionloss[1] = 0.0


EDITS = {
    "loaded again": {},
    "iterations": {"change": changes(iterations=10)},
    "solver": {"change": changes(solver=mujoco.mjtSolver.mjSOL_NEWTON)},
    "flags": {"change": changes(disableflags=0)},
    "another length": {"xml": SWING.replace("0 0 0 0.4 0 0", "0 0 0 0.5 0 0")},
    "renamed actuator": {"xml": SWING.replace('"pull"', '"push"')},
    "no frictionloss": {"change": without_frictionloss},
    "leaves alone": {"change": lighter},
}


def randomised(model):
    """The model with three fields that differ from world to world."""
    scale = jnp.linspace(0.8, 1.2, WORLDS)
    return model.tree_replace(
        {
            "geom_friction": scale[:, None, None] * model.geom_friction,
            "body_mass": scale[:, None] * model.body_mass,
            "dof_frictionloss": scale[:, None] * model.dof_frictionloss,
        }
    )


def one_world(batched, model, k):
    """World k, put together by hand."""
    names = ("geom_friction", "body_mass", "dof_frictionloss")
    return model.tree_replace({name: getattr(batched, name)[k] for name in names})


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_one_record_serves_every_edit(edit):
    """The axes that were decided early bind, and map as the loop over worlds does."""
    model = edited(**edit)
    batched = randomised(model)
    bound = decided().bind(batched, like=model)
    assert bound.batch_size == WORLDS
    assert sum(axis == 0 for axis in bound.leaf_axes) == 3

    def total(m):
        return (m.body_mass.sum() + m.geom_friction.sum()) * m.opt.timestep + m.nv

    want = [total(one_world(batched, model, k)) for k in range(WORLDS)]
    np.testing.assert_allclose(sa.vmap(total, decided())(batched), np.stack(want))


def test_plain_jax_refuses_the_early_axes():
    """The trouble is real: axes made from the first model do not fit the second."""
    early = jax.tree_util.tree_map(lambda _: None, edited()).tree_replace(
        {"geom_friction": 0, "body_mass": 0, "dof_frictionloss": 0}
    )
    late = randomised(edited(**EDITS["renamed actuator"]))
    with pytest.raises(ValueError, match="vmap in_axes"):
        jax.vmap(lambda m: m.body_mass, in_axes=(early,))(late)


def test_worlds_roll_as_they_do_one_by_one():
    """A step of all worlds is the step of each."""
    model = edited(**EDITS["iterations"])
    batched = randomised(model)

    def rolled(m):
        data = mjx.make_data(m).replace(qpos=jnp.array([0.3, -0.2]))
        return mjx.step(m, data).qpos

    got = decided().batch(rolled)(batched)
    alone = jax.jit(rolled)
    want = [alone(one_world(batched, model, k)) for k in range(WORLDS)]
    np.testing.assert_allclose(got, np.stack(want), atol=1e-6)


def test_edits_are_told_apart_and_named():
    """Each structure has its own result; what differs is named by its field."""
    fast = decided().batch(lambda m: m.body_mass.sum() * m.opt.iterations)
    for n in (4, 10):
        model = edited(changes(iterations=n))
        got = fast(randomised(model))
        want = randomised(model).body_mass.sum(axis=1) * n
        np.testing.assert_allclose(got, want, rtol=1e-6)
    assert "iterations: 4, 10" in str(fast.explain_recompiles())


def mistaken(spec, value, **options):
    """The one error, short enough to be read."""
    with pytest.raises(sa.BindError, match=r"\w+") as caught:
        spec.bind(value, **options)
    assert len(str(caught.value)) < 2000
    (problem,) = caught.value.problems
    return problem, str(caught.value)


def test_a_misspelt_field_is_named():
    """The nearest name is given."""
    spec = decided()
    spec.geom_fricton = 0
    problem, text = mistaken(spec, randomised(edited()))
    assert problem.kind == "unknown"
    assert problem.path == "spec.geom_fricton = 0"
    assert "did you mean  spec.geom_friction = 0 ?" in text


def test_a_static_field_is_named():
    """A field without leaves cannot be mapped."""
    spec = decided()
    spec.nv = 0
    problem, text = mistaken(spec, randomised(edited()))
    assert problem.kind == "static"
    assert problem.path == "spec.nv = 0"
    assert "static field of Model" in text


def test_a_wrong_count_is_named():
    """One field with another number of worlds."""
    batched = randomised(edited())
    batched = batched.replace(body_mass=jnp.ones((WORLDS + 2, 3)))
    with pytest.raises(sa.BindError, match="batch size") as caught:
        decided().bind(batched)
    assert len(str(caught.value)) < 2000
    odd = caught.value.problems[-1]
    assert (odd.path, odd.shape, odd.axis) == ("value.body_mass", (WORLDS + 2, 3), 0)


def test_a_forgotten_batch_is_named():
    """A field that was declared mapped and never batched, told by the template."""
    model = edited()
    batched = randomised(model).replace(dof_frictionloss=jnp.ones(WORLDS))
    with pytest.raises(sa.BindError, match="dof_frictionloss") as caught:
        decided().bind(batched, like=model)
    assert len(str(caught.value)) < 2000
    (problem,) = caught.value.problems
    assert (problem.kind, problem.path) == ("shape", "value.dof_frictionloss")
