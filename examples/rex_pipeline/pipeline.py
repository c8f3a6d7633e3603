"""Stage two: a rex pipeline of a pendulum, as it looks once its settings are known.

Agent, actuator, pendulum and sensor run at their own rates and talk with delays:

    agent --> actuator --(delay)--> world --(delay)--> sensor --> agent

rex turns their timing into a graph, and the state of that graph is one pytree of more
than a hundred leaves. The settings end up in its *static* fields and its structure.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import jax
import rex.artificial
from attrs import frozen
from distrax import Normal
from flax.core import FrozenDict
from jax.typing import ArrayLike
from rex.base import GraphState, TrainableDist
from rex.graph import Graph

# The pendulum's own package imports brax, for a renderer and a second simulator. Its
# nodes need neither, so an empty package stands where that __init__ would have run.
_nodes = ModuleType("rex.examples.pendulum")
_nodes.__path__ = [str(Path(find_spec("rex").origin).parent / "examples" / "pendulum")]
sys.modules.setdefault(_nodes.__name__, _nodes)

from rex.examples.pendulum.actuator import SimActuator  # noqa: E402
from rex.examples.pendulum.agent import Agent  # noqa: E402
from rex.examples.pendulum.ode import OdeWorld  # noqa: E402
from rex.examples.pendulum.sensor import SimSensor  # noqa: E402


@frozen
class Settings:
    """What is decided when the pipeline is built; rates in Hz, times in seconds."""

    control_rate: float
    physics_rate: float
    max_delay: float
    interp: str
    duration: float = 1.0

    def __str__(self) -> str:
        """The settings in one line."""
        return (
            f"{self.control_rate} Hz, delays up to {1e3 * self.max_delay:.0f} ms, "
            f"{self.interp}"
        )


def build(settings: Settings) -> Graph:
    """The pipeline: four nodes, their connections, and the graph of their timing."""
    soon = Normal(0.002, 0.0)

    def trainable() -> TrainableDist:
        return TrainableDist.create(
            delay=0.0, min=0.0, max=settings.max_delay, interp=settings.interp
        )

    world = OdeWorld(rate=settings.physics_rate, delay_dist=Normal(0.001, 0.0))
    sensor = SimSensor(rate=settings.control_rate, delay_dist=soon)
    agent = Agent(rate=settings.control_rate, delay_dist=soon)
    actuator = SimActuator(rate=settings.control_rate, delay_dist=soon)

    agent.connect(sensor, window=3, delay_dist=soon)
    actuator.connect(agent, window=1, delay_dist=soon)
    world.connect(actuator, window=1, skip=True, delay_dist=trainable())
    sensor.connect(world, window=1, delay_dist=trainable())

    nodes = {node.name: node for node in (world, sensor, agent, actuator)}
    timing = rex.artificial.generate_graphs(nodes, settings.duration)
    return Graph(nodes, agent, timing, progress_bar=False)


def start(graph: Graph) -> GraphState:
    """The state before the first step, with room for what the sensor reports."""
    # Not `jax.random.key`: rex 0.0.12 cannot run with typed keys in its state.
    state = graph.init(jax.random.PRNGKey(0))
    return graph.init_record(state, output={"sensor": True})


def with_candidates(
    state: GraphState,
    *,
    mass: ArrayLike,
    length: ArrayLike,
    actuation: ArrayLike,
    sensing: ArrayLike,
) -> GraphState:
    """The state with these numbers in it: one of each, or a batch of each.

    Shapes:
      All four `()` for one candidate, or `(n,)` for `n`. `kg`, `m`, `s` and `s`.
    """
    world = state.params["world"].replace(mass=mass, length=length)
    inputs = _delay(state.inputs, "world", "actuator", actuation)
    inputs = _delay(inputs, "sensor", "world", sensing)
    return state.replace(params=state.params.copy({"world": world}), inputs=inputs)


def _delay(
    inputs: FrozenDict, receiver: str, sender: str, seconds: ArrayLike
) -> FrozenDict:
    """`inputs` with this delay; rex holds it as a fraction of its static bounds."""
    message = inputs[receiver][sender]
    bounds = message.delay_dist
    alpha = (seconds - bounds.min) / (bounds.max - bounds.min)
    message = message.replace(delay_dist=bounds.replace(alpha=alpha))
    return inputs.copy({receiver: inputs[receiver].copy({sender: message})})


def measure(graph: Graph, state: GraphState) -> jax.Array:
    """Run the pipeline; the angles that the sensor reported, in order.

    The agent's torques are random, but drawn from the keys in the state, so that
    every candidate is moved by the same ones.
    """
    return graph.rollout(state).aux["record"].nodes["sensor"].steps.output.th
