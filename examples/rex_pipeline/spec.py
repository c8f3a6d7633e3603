"""Stage one: which numbers of the pipeline differ from candidate to candidate.

Nothing exists yet but names: no rex, no pipeline, no array. Rates, bounds of delays
and timing, which become static data of the state, are settled elsewhere and later.
"""

import staged_axes as sa

spec = sa.AxesBuilder(default=None)

with spec.stage("physics"):
    spec.params["world"].mass = 0
    spec.params["world"].length = 0

with spec.stage("delays"):
    spec.inputs["world"]["actuator"].delay_dist.alpha = 0
    spec.inputs["sensor"]["world"].delay_dist.alpha = 0
