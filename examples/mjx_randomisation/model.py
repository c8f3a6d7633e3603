"""A sled that carries a pendulum over a floor, in MuJoCo; and what is edited later."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from attrs import frozen
from mujoco import mjx

XML = """
<mujoco model="sled">
  <option timestep="0.01" solver="CG" iterations="6" ls_iterations="6">
    <flag eulerdamp="disable"/>
  </option>
  <default>
    <geom contype="0" conaffinity="0"/>
    <default class="touches"><geom contype="1" conaffinity="1"/></default>
  </default>
  <worldbody>
    <geom name="floor" class="touches" type="plane" size="9 9 .1" friction="0"/>
    <body name="sled" pos="0 0 0.05">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <joint name="rise" type="slide" axis="0 0 1"/>
      <geom name="deck" type="box" size="0.25 0.15 0.04" pos="0 0 0.06" mass="0.9"/>
      <geom name="runner" class="touches" size="0.05" mass="0.1"/>
      <body name="pendulum" pos="0 0 0.7">
        <joint name="hinge" type="hinge" axis="0 1 0" frictionloss="0.01"/>
        <geom name="rod" type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="0.3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide" gear="8" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
PULSE = 1.6  # s: pushed for one half of it, pulled for the other


def first() -> mujoco.MjModel:
    """The model that one has in mind while the record is written."""
    return mujoco.MjModel.from_xml_string(XML)


def edited() -> mujoco.MjModel:
    """The model as it is later: a longer rod, another name, another solver."""
    xml = XML.replace("0 0 0 0 0 -0.5", "0 0 0 0 0 -0.65").replace('"push"', '"thrust"')
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.iterations = 4
    return model


@frozen
class Draw:
    """What differs, as plain numbers, one for each world."""

    friction: np.ndarray
    mass: np.ndarray
    loss: np.ndarray

    def arrays(self, model: mujoco.MjModel) -> dict[str, np.ndarray]:
        """The fields of a model that vary, with the worlds along their first axis."""
        worlds = len(self.mass)
        friction, mass, loss = (
            np.repeat(field[None], worlds, axis=0)
            for field in (model.geom_friction, model.body_mass, model.dof_frictionloss)
        )
        friction[:, model.geom("runner").id, 0] = self.friction
        mass[:, model.body("pendulum").id] = self.mass
        loss[:, model.joint("hinge").dofadr[0]] = self.loss
        return {"geom_friction": friction, "body_mass": mass, "dof_frictionloss": loss}


def draw(worlds: int) -> Draw:
    """Friction of the runner, mass of the pendulum (kg), and loss in its hinge (Nm)."""
    rng = np.random.default_rng(0)
    return Draw(
        friction=rng.uniform(0.02, 0.35, worlds),
        mass=rng.uniform(0.1, 1.0, worlds),
        loss=rng.uniform(0.0, 0.05, worlds),
    )


def start(model: mjx.Model, *worlds: int) -> dict[str, jax.Array]:
    """One world at rest, or many of them."""
    state = {
        "time": jnp.zeros(worlds),
        "qpos": jnp.zeros((*worlds, model.nq)),
        "qvel": jnp.zeros((*worlds, model.nv)),
    }
    # MJX binds its arrays to a device, and so the results. A state that is not bound
    # yet would make JAX compile the first call for itself alone.
    return jax.device_put(state, jax.devices()[0])


def advance(
    model: mjx.Model, state: dict[str, jax.Array], steps: int
) -> tuple[dict[str, jax.Array], jax.Array]:
    """Simulate one world for some steps.

    Returns:
      The last state; and of each step the way of the sled in m and the angle of the
      pendulum in rad, `(steps, 2)`.
    """

    def step(data: mjx.Data, _: None) -> tuple[mjx.Data, jax.Array]:
        phase = data.time / PULSE
        push = jnp.where(phase < 1, jnp.sin(2 * jnp.pi * phase), 0.0)
        data = mjx.step(model, data.replace(ctrl=push[None]))
        return data, data.qpos[jnp.array([0, 2])]

    data = mjx.make_data(model).replace(**state)
    data, path = jax.lax.scan(step, data, length=steps)
    return {name: getattr(data, name) for name in state}, path
