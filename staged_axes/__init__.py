"""Say which leaves `vmap` maps before you have the data.

record   `AxesBuilder`      decisions, early, by several modules; no data needed
resolve                     one decision for each leaf of a concrete value
bind     `spec.bind(val)`   checked axes, and who decided each: `BoundAxes`
run      `vmap`             the function over the flat leaves of its arguments
"""

from importlib.metadata import version

from staged_axes._axes import STATIC, from_node, optional, per_leaf
from staged_axes._bind import BoundAxes
from staged_axes._builder import AxesBuilder, merge
from staged_axes._by_text import at, record, rule
from staged_axes._decisions import UNDECIDED
from staged_axes._infer import infer
from staged_axes._outputs import AUTO
from staged_axes._randomization import randomization_fn
from staged_axes._values import stack
from staged_axes._vmap import vmap
from staged_axes.errors import (
    BatchError,
    BindError,
    ConflictError,
    MemberError,
    Problem,
    RecordError,
    StagedAxesError,
)

__all__ = [
    "AUTO",
    "STATIC",
    "UNDECIDED",
    "AxesBuilder",
    "BatchError",
    "BindError",
    "BoundAxes",
    "ConflictError",
    "MemberError",
    "Problem",
    "RecordError",
    "StagedAxesError",
    "at",
    "from_node",
    "infer",
    "merge",
    "optional",
    "per_leaf",
    "randomization_fn",
    "record",
    "rule",
    "stack",
    "vmap",
]

__version__ = version("staged_axes")
