"""Say which leaves `vmap` maps before you have the data.

record   `AxesBuilder`      decisions, early, by several modules; no data needed
resolve                     one decision for each leaf of a concrete value
bind     `spec.bind(val)`   checked axes, and who decided each: `BoundAxes`
run      `vmap`             the function over the flat leaves of its arguments
         `batch`            ... and compiled, one program for each structure
staged   `Pipeline`         all of it in named stages, with hooks around them
"""

from importlib.metadata import version

from staged_axes._bind.bound import BoundAxes
from staged_axes._bind.builder import AxesBuilder
from staged_axes._bind.infer import infer
from staged_axes._bind.merge import merge
from staged_axes._bind.randomization import randomization_fn
from staged_axes._pipeline.events import StageEvent, StageHook, log_events
from staged_axes._pipeline.pipeline import Pipeline
from staged_axes._pipeline.progress import progress
from staged_axes._pipeline.stages import Staged
from staged_axes._programs.batch import batch
from staged_axes._programs.batched import BatchedFunction
from staged_axes._record.axes import STATIC, from_node, optional, per_leaf
from staged_axes._record.by_text import at, record, rule
from staged_axes._record.decisions import UNDECIDED
from staged_axes._run.outputs import AUTO
from staged_axes._run.vmap import vmap
from staged_axes._values.values import stack
from staged_axes.errors import (
    BatchError,
    BindConflictError,
    BindError,
    ConflictError,
    FieldError,
    MemberError,
    PipelineError,
    Problem,
    RecompileWarning,
    RecordError,
    StagedAxesError,
)

__all__ = [
    "AUTO",
    "STATIC",
    "UNDECIDED",
    "AxesBuilder",
    "BatchError",
    "BatchedFunction",
    "BindConflictError",
    "BindError",
    "BoundAxes",
    "ConflictError",
    "FieldError",
    "MemberError",
    "Pipeline",
    "PipelineError",
    "Problem",
    "RecompileWarning",
    "RecordError",
    "StageEvent",
    "StageHook",
    "Staged",
    "StagedAxesError",
    "at",
    "batch",
    "from_node",
    "infer",
    "log_events",
    "merge",
    "optional",
    "per_leaf",
    "progress",
    "randomization_fn",
    "record",
    "rule",
    "stack",
    "vmap",
]

__version__ = version("staged_axes")
