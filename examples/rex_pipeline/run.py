"""Find the hidden mass, length and delays of a pendulum, with one record of axes.

The record comes first, then a pipeline that it serves, then another pipeline.

    python examples/rex_pipeline/run.py
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen
from spec import spec

import staged_axes as sa

assert "rex" not in sys.modules, "the record is complete before rex is imported"

import picture  # noqa: E402
from pipeline import Settings, build, measure, start, with_candidates  # noqa: E402
from rex.base import GraphState  # noqa: E402

TRUTH = {"mass": 0.05, "length": 0.042, "actuation": 0.018, "sensing": 0.030}
RANGES = {
    "mass": (0.03, 0.07),
    "length": (0.03, 0.06),
    "actuation": (0.0, 0.06),
    "sensing": (0.0, 0.06),
}
FIRST = Settings(control_rate=50, physics_rate=50, max_delay=0.06, interp="linear")
SECOND = Settings(control_rate=40, physics_rate=80, max_delay=0.08, interp="zoh")


@frozen
class Search:
    """What one pipeline made of the candidates."""

    settings: Settings
    score: Callable[[GraphState], jax.Array]
    states: GraphState
    bound: sa.BoundAxes
    scores: np.ndarray
    one_by_one: np.ndarray

    def error(self) -> float:
        """The largest difference between the one call and the loop, in rad."""
        return float(np.max(np.abs(self.scores[: len(self.one_by_one)] - self.one_by_one)))


def main(argv: Sequence[str] | None = None) -> int:
    """Search in two pipelines; 1 where the one call and the loop differ."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--candidates", type=int, default=1024)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output")
    options = parser.parse_args(argv)
    candidates = draw(options.candidates)

    first = search(FIRST, candidates)
    report(first, candidates)
    print(first.bound)

    second = search(SECOND, candidates)
    report(second, candidates)
    print("plain jax.vmap, with the axes of the first pipeline:")
    print(f"  {refusal(second, first.bound.in_axes)}")

    path = options.output / "scores.png"
    scores = {str(found.settings): found.scores for found in (first, second)}
    picture.save(path, combine(candidates), combine(TRUTH), scores)
    print(f"picture: {path}")
    return int(max(first.error(), second.error()) > 1e-5)


def draw(count: int) -> dict[str, np.ndarray]:
    """Candidates, spread evenly over the ranges."""
    rng = np.random.default_rng(0)
    return {
        name: rng.uniform(*ends, count).astype(np.float32)
        for name, ends in RANGES.items()
    }


def search(settings: Settings, candidates: Mapping[str, np.ndarray]) -> Search:
    """Build a pipeline, record the truth in it, score all candidates in one call."""
    graph = build(settings)
    state = start(graph)
    run = jax.jit(lambda state: measure(graph, state))
    recording = run(with_candidates(state, **TRUTH))

    def score(state: GraphState) -> jax.Array:
        return distance(measure(graph, state), recording)

    states = with_candidates(state, **candidates)
    few = ({k: v[i] for k, v in candidates.items()} for i in range(5))
    return Search(
        settings=settings,
        score=score,
        states=states,
        bound=spec.bind(states),
        scores=np.asarray(spec.batch(score)(states)),
        one_by_one=np.asarray(
            [distance(run(with_candidates(state, **one)), recording) for one in few]
        ),
    )


def distance(angles: jax.Array, recording: jax.Array) -> jax.Array:
    """How far the angles are apart, in rad: the root mean square of their chords."""
    return jnp.sqrt(jnp.mean(jnp.square(2 * jnp.sin((angles - recording) / 2))))


def combine(numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mass x length in g m and total delay in ms: all that the angles depend on."""
    return np.stack(
        [
            1e3 * numbers["mass"] * numbers["length"],
            1e3 * (numbers["actuation"] + numbers["sensing"]),
        ]
    )


def report(found: Search, candidates: Mapping[str, np.ndarray]) -> None:
    """Print the best candidate beside the truth."""
    best = int(np.argmin(found.scores))
    count = len(jax.tree.leaves(found.states))
    print(f"\n{found.settings}")
    print(f"  {len(found.scores):,} candidates in one call, {count} leaves in the state")
    print("          mass x length   total delay        score")
    print("  truth   {:9.3f} g m {:10.1f} ms".format(*combine(TRUTH)))
    print(
        "  best    {:9.3f} g m {:10.1f} ms {:10.4f} rad".format(
            *combine(candidates)[:, best], found.scores[best]
        )
    )
    print(f"  median {np.median(found.scores):40.4f} rad")
    print(f"  {len(found.one_by_one)} of them one by one: at most {found.error():.0e} rad apart\n")


def refusal(found: Search, in_axes: GraphState) -> str:
    """The first line of what plain `jax.vmap` says to axes of another pipeline."""
    try:
        jax.vmap(found.score, in_axes=(in_axes,))(found.states)
    except ValueError as error:
        return str(error).split("\n")[0]
    return "accepted"


if __name__ == "__main__":
    sys.exit(main())
