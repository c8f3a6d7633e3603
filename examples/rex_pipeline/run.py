"""Find the hidden mass, length and delays of a pendulum, with one record of axes.

The record comes first; then a pipeline that it serves; then another pipeline.

    python examples/rex_pipeline/run.py
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen
from spec import pipe, spec

import staged_axes as sa

assert "rex" not in sys.modules, "the record is complete before rex is imported"

import picture  # noqa: E402
from pipeline import (  # noqa: E402
    Nodes,
    Settings,
    build,
    connect,
    measure,
    start,
    with_numbers,
)
from rex.base import GraphState  # noqa: E402

FIRST = Settings(control_rate=50, physics_rate=50, max_delay=0.06, interp="linear")
SECOND = Settings(control_rate=40, physics_rate=80, max_delay=0.08, interp="zoh")

TRUTH = {
    "mass": np.float32(0.05),
    "length": np.float32(0.042),
    "actuation": np.float32(0.018),
    "sensing": np.float32(0.030),
}
RANGES = {
    "mass": (0.03, 0.07),
    "length": (0.03, 0.06),
    "actuation": (0.0, 0.06),
    "sensing": (0.0, 0.06),
}
CHECKED = 5  # candidates that are evaluated one by one too
ROUNDING = 1e-5  # rad


@frozen
class Search:
    """What one pipeline made of the candidates."""

    fast: sa.BatchedFunction
    staged: sa.Staged
    scores: np.ndarray
    one_by_one: np.ndarray

    def error(self) -> float:
        """The largest difference between the one call and the loop, in rad."""
        batched = self.scores[: len(self.one_by_one)]
        return float(np.max(np.abs(batched - self.one_by_one)))


def main(argv: Sequence[str] | None = None) -> int:
    """Search in two pipelines; 1 where the one call and the loop differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--candidates", type=int, default=1024)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output")
    options = parser.parse_args(argv)
    candidates = draw(options.candidates)

    print(spec)
    pipe.subscribe(sa.progress())

    first = search(FIRST, candidates)
    report(FIRST, first, candidates)
    print(first.staged.bound)
    changed = np.max(np.abs(score_again(first, candidates) - first.scores))
    info = first.fast.cache_info()
    print(
        f"\nThe same settings, built again: {info.structures} structures, "
        f"{info.programs} compiled, scores differ by {changed:.0e} rad at most"
    )

    second = search(SECOND, candidates)
    report(SECOND, second, candidates)
    print(repr(second.staged.bound))
    print("Plain jax.vmap, with the axes of the first pipeline:")
    print(f"  {refusal(second, first.staged.bound.in_axes)}")

    path = options.output / "scores.png"
    scores = {str(FIRST): first.scores, str(SECOND): second.scores}
    picture.save(path, combine(candidates), combine(TRUTH), scores)
    print(f"\nPicture: {path}")
    return int(max(first.error(), second.error(), changed) > ROUNDING)


def draw(count: int) -> dict[str, np.ndarray]:
    """Candidates, spread evenly over the ranges."""
    rng = np.random.default_rng(0)
    return {
        name: rng.uniform(*ends, count).astype(np.float32)
        for name, ends in RANGES.items()
    }


def search(settings: Settings, candidates: Mapping[str, np.ndarray]) -> Search:
    """Build a pipeline, record the truth in it, score all candidates in one call."""
    nodes = connect(settings, candidates)
    graph = build(nodes, settings)
    state = start(graph)
    run = jax.jit(lambda state: measure(graph, state))
    recording = run(with_numbers(nodes, state, TRUTH))

    def score(state: GraphState) -> jax.Array:
        return distance(measure(graph, state), recording)

    staged = stage(nodes, state)
    fast = pipe.batch(score)
    scores = fast(staged.value)

    one_by_one = []
    for numbers in islice(zip(*candidates.values(), strict=True), CHECKED):
        one = dict(zip(candidates, numbers, strict=True))
        one_by_one.append(distance(run(with_numbers(nodes, state, one)), recording))

    return Search(
        fast=fast,
        staged=staged,
        scores=np.asarray(scores),
        one_by_one=np.asarray(one_by_one),
    )


def stage(nodes: Nodes, state: GraphState) -> sa.Staged:
    """Let the nodes put the candidates into the state, and bind what was recorded."""
    for name in ("world", "sensor"):
        pipe.replace(name, nodes[name])
    return pipe.run(state)


def score_again(found: Search, candidates: Mapping[str, np.ndarray]) -> np.ndarray:
    """Score the candidates in a state of the first settings that was built anew.

    distrax compares distributions by identity, so nothing that JAX keeps for the first
    state fits the second one.
    """
    nodes = connect(FIRST, candidates)
    return np.asarray(found.fast(stage(nodes, start(build(nodes, FIRST))).value))


def distance(angles: jax.Array, recording: jax.Array) -> jax.Array:
    """How far the angles are apart, in rad: the root mean square of their chords."""
    return jnp.sqrt(jnp.mean(jnp.square(2 * jnp.sin((angles - recording) / 2))))


def combine(numbers: Mapping[str, np.ndarray]) -> np.ndarray:
    """Mass x length in g m, and total delay in ms: all that the angles depend on."""
    moment = numbers["mass"] * numbers["length"]
    delay = numbers["actuation"] + numbers["sensing"]
    return 1e3 * np.stack([moment, delay])


def report(
    settings: Settings, found: Search, candidates: Mapping[str, np.ndarray]
) -> None:
    """Print the best candidate below the truth."""
    best = np.argmin(found.scores)
    rows = {"truth": combine(TRUTH), "best": combine(candidates)[:, best]}
    print(f"\n{settings}\n\n           mass x length   total delay")
    for name, (moment, delay) in rows.items():
        print(f"  {name:9} {moment:8.3f} g m {delay:10.1f} ms")
    print(
        f"\n  score: {found.scores[best]:.4f} rad, the best of "
        f"{len(found.scores):,} in one call; median {np.median(found.scores):.4f} rad"
        f"\n  check: {len(found.one_by_one)} of them, one by one, differ by "
        f"{found.error():.0e} rad at most\n"
    )


def refusal(found: Search, in_axes: GraphState) -> str:
    """The first line of what plain `jax.vmap` says to axes of another pipeline."""
    try:
        jax.vmap(found.fast, in_axes=(in_axes,))(found.staged.value)
    except ValueError as error:
        return str(error).split("\n")[0].strip()[:100]
    return "accepted"


if __name__ == "__main__":
    sys.exit(main())
