"""All rows of the table: what is measured, its goal, and the function that sets it up.

A full run takes some minutes: JAX compiles much in it. A quick one takes the smallest
sizes and a few turns; it shows that everything runs, and no more.
"""

from functools import partial

from benchmarks.binds import again, cold
from benchmarks.calls import one, variants
from benchmarks.compiles import compiles, first, new_static
from benchmarks.imports import imports
from benchmarks.measure import Amount, Effort, Ratio
from benchmarks.memory import broadcast, growth, structures, take, vary

FULL = Effort(turns=9, seconds=30, error=0.005)
QUICK = Effort(turns=2, seconds=0, error=0)

# Leaves -> the goal for one model, the goal for many in turn.
_CALLS = {2: (1.15, 1.25), 20: (1.10, 1.15), 200: (1.08, 1.10), 2_000: (1.05, 1.10)}
_COMPILED = 10_000  # leaves in all the programs by hand of one row: they take long


def benchmarks(*, quick: bool = False) -> list[Ratio | Amount]:
    """The rows in the order of the table."""
    calls = dict(list(_CALLS.items())[: 1 if quick else None])
    traced = (2,) if quick else (20, 200)
    few, many, crowd = (3, 10, 300) if quick else (100, 1_000, 10_000)
    size = 8 if quick else 1_024
    leaves, decisions = (100, 5) if quick else (10_000, 50)
    return [
        *(
            Ratio(f"call, {n:,} leaves", goal, partial(one, n))
            for n, (goal, _) in calls.items()
        ),
        *(
            Ratio(
                f"call, {n:,} leaves, {few} variants in turn",
                goal,
                partial(variants, n, few, min(few, _COMPILED // n)),
            )
            for n, (_, goal) in calls.items()
        ),
        *(
            Ratio(f"new static value, {n} leaves", 0.10, partial(new_static, n))
            for n in traced
        ),
        Amount(f"compiles for {few} static values", 1, "", partial(compiles, few)),
        *(Ratio(f"first call, {n} leaves", 1.10, partial(first, n)) for n in traced),
        Ratio(f"cold bind, {leaves:,} leaves", 3, partial(cold, leaves, decisions)),
        Ratio(f"bind again, {leaves:,} leaves", 3, partial(again, leaves, decisions)),
        Ratio("import", 1.10, imports),
        *(
            Amount(f"{act}, {size:,} MiB", 8, "MiB", partial(run, size))
            for act, run in [("broadcast", broadcast), ("vary", vary), ("take", take)]
        ),
        Amount(f"programs, {many:,} static values", 256, "", partial(structures, many)),
        Amount(
            f"memory for each of {crowd:,} static values",
            1,
            "KiB",
            partial(growth, crowd, crowd // 30),
        ),
    ]
