"""Stage one: which numbers of the rig are unknown.

Nothing exists yet but names: no rex, no pipeline, no arrays. The rates, the bounds
of the delays and the timing of the pipeline, all of it static data, are decided
elsewhere and later.
"""

import staged_axes as sa

spec = sa.AxesBuilder(default=None)

with spec.stage("physics"):
    pendulum = spec.params["world"]
    pendulum.mass = 0
    pendulum.length = 0

with spec.stage("timing"):
    received = spec.inputs
    received["world"]["actuator"].delay_dist.alpha = 0
    received["sensor"]["world"].delay_dist.alpha = 0
