"""Stage one: each part says which of its numbers differ from candidate to candidate.

Nothing exists yet but names: no rex, no pipeline, no array. Rates, bounds of delays
and timing, which become static data of the state, are settled elsewhere and later.
"""

import staged_axes as sa


class WorldAxes:
    """What the pendulum decides: its mass, its length, the delay of torques."""

    name = "world"

    def record(self, axes: sa.AxesBuilder) -> None:
        """Maps the numbers that the pendulum will be given."""
        axes.params[self.name].mass = 0
        axes.params[self.name].length = 0
        axes.inputs[self.name]["actuator"].delay_dist.alpha = 0


class SensorAxes:
    """What the sensor decides: the delay of what it sees."""

    name = "sensor"

    def record(self, axes: sa.AxesBuilder) -> None:
        """Maps the number that the sensor will be given."""
        axes.inputs[self.name]["world"].delay_dist.alpha = 0


pipe = sa.Pipeline(default=None)
for part in (WorldAxes(), SensorAxes()):
    pipe.add(part.name, part)

spec = pipe.record()  # two parts that disagree would be found out here
