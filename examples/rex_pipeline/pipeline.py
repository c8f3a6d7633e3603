"""The pipeline of a pendulum: its nodes, and the graph of their timing.

Agent, actuator, pendulum and sensor run at their own rates and talk with delays:

    agent --> actuator --(delay)--> world --(delay)--> sensor --> agent

rex turns their timing into a graph, and the state of that graph is one pytree of more
than a hundred leaves. The settings end up in its *static* fields and its structure.
"""

from collections.abc import Mapping

import jax
import rex.artificial
from attrs import frozen
from distrax import Normal
from nodes import Agent, Numbers, Sensor, SimActuator, World
from rex.base import GraphState, TrainableDist
from rex.graph import Graph
from rex.node import BaseNode

Nodes = Mapping[str, BaseNode]


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


def connect(settings: Settings, candidates: Numbers) -> Nodes:
    """The four nodes and their connections."""
    soon = Normal(0.002, 0.0)
    control = {"rate": settings.control_rate, "delay_dist": soon}

    def trainable() -> TrainableDist:
        return TrainableDist.create(
            delay=0.0, min=0.0, max=settings.max_delay, interp=settings.interp
        )

    world = World(
        candidates=candidates,
        rate=settings.physics_rate,
        delay_dist=Normal(0.001, 0.0),
    )
    sensor = Sensor(candidates=candidates, **control)
    agent = Agent(**control)
    actuator = SimActuator(**control)

    agent.connect(sensor, window=3, delay_dist=soon)
    actuator.connect(agent, window=1, delay_dist=soon)
    world.connect(actuator, window=1, skip=True, delay_dist=trainable())
    sensor.connect(world, window=1, delay_dist=trainable())
    return {node.name: node for node in (world, sensor, agent, actuator)}


def build(nodes: Nodes, settings: Settings) -> Graph:
    """The graph of the timing of the nodes."""
    timing = rex.artificial.generate_graphs(nodes, settings.duration)
    return Graph(nodes, nodes["agent"], timing, progress_bar=False)


def start(graph: Graph) -> GraphState:
    """The state before the first step, with room for what the sensor reports."""
    # Not `jax.random.key`: rex 0.0.12 cannot run with typed keys in its state.
    state = graph.init(jax.random.PRNGKey(0))
    return graph.init_record(state, output={"sensor": True})


def with_numbers(nodes: Nodes, state: GraphState, numbers: Numbers) -> GraphState:
    """The state of one candidate."""
    for name in ("world", "sensor"):
        state = nodes[name].put(state, numbers)
    return state


def measure(graph: Graph, state: GraphState) -> jax.Array:
    """Run the pipeline; the angles that the sensor reported, in order.

    The agent's torques are random, but drawn from the keys in the state, so that
    every candidate is moved by the same ones.
    """
    return graph.rollout(state).aux["record"].nodes["sensor"].steps.output.th
