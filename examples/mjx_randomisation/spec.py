"""What differs from world to world: decided here, before there is a model or MuJoCo."""

import staged_axes as sa

spec = sa.AxesBuilder(default=None)

with spec.stage("randomise"):
    spec.geom_friction = 0
    spec.body_mass = 0
    spec.dof_frictionloss = 0
