"""The nodes of a pendulum's pipeline: stages that record and build their own part.

`record` comes from `spec.py`, where there is no rex; `build` puts the candidates'
numbers in their places.
"""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from jax.typing import ArrayLike
from rex.base import GraphState
from spec import SensorAxes, WorldAxes

# The pendulum's own package imports brax, for a renderer and a second simulator. Its
# nodes need neither, so an empty package stands where that __init__ would have run.
_nodes = ModuleType("rex.examples.pendulum")
_nodes.__path__ = [str(Path(find_spec("rex").origin).parent / "examples" / "pendulum")]
sys.modules.setdefault(_nodes.__name__, _nodes)

from rex.examples.pendulum.actuator import SimActuator  # noqa: E402
from rex.examples.pendulum.agent import Agent  # noqa: E402
from rex.examples.pendulum.ode import OdeWorld  # noqa: E402
from rex.examples.pendulum.sensor import SimSensor  # noqa: E402

__all__ = ["Agent", "Sensor", "SimActuator", "World"]

Numbers = Mapping[str, ArrayLike]


class World(WorldAxes, OdeWorld):
    """The pendulum, of unknown mass and length; torques reach it late.

    Args:
      candidates: `"mass"` in kg, `"length"` in m and `"actuation"`, a delay in s.
      **options: As for any node.

    Shapes:
      Candidates are `(n,)` each, as are those of all nodes.
    """

    def __init__(self, *, candidates: Numbers, **options: Any) -> None:
        super().__init__(**options)
        self.candidates = candidates

    def build(self, state: GraphState) -> GraphState:
        """The state with all candidates in it."""
        return self.put(state, self.candidates)

    def put(self, state: GraphState, numbers: Numbers) -> GraphState:
        """The state with these numbers in it, of one candidate or of all."""
        own = state.params[self.name].replace(
            mass=numbers["mass"], length=numbers["length"]
        )
        state = state.replace(params=state.params.copy({self.name: own}))
        return with_delay(state, self.name, "actuator", numbers["actuation"])


class Sensor(SensorAxes, SimSensor):
    """The sensor of the angle, which it sees late.

    Args:
      candidates: `"sensing"`, a delay in s.
      **options: As for any node.
    """

    def __init__(self, *, candidates: Numbers, **options: Any) -> None:
        super().__init__(**options)
        self.candidates = candidates

    def build(self, state: GraphState) -> GraphState:
        """The state with all candidates in it."""
        return self.put(state, self.candidates)

    def put(self, state: GraphState, numbers: Numbers) -> GraphState:
        """The state with this delay in it, of one candidate or of all."""
        return with_delay(state, self.name, "world", numbers["sensing"])


def with_delay(
    state: GraphState, receiver: str, sender: str, seconds: ArrayLike
) -> GraphState:
    """The state with this delay; rex holds it as a fraction of its static bounds."""
    messages = state.inputs[receiver]
    bounds = messages[sender].delay_dist
    alpha = (seconds - bounds.min) / (bounds.max - bounds.min)
    message = messages[sender].replace(delay_dist=bounds.replace(alpha=alpha))
    inputs = state.inputs.copy({receiver: messages.copy({sender: message})})
    return state.replace(inputs=inputs)
