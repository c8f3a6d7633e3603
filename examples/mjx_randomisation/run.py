"""Simulate 2,048 different worlds at once, in a model that is edited later.

What varies is recorded first; then a model is loaded, varied and simulated; then it is
edited, and the same record serves it again.

    python examples/mjx_randomisation/run.py
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import jax
import numpy as np
from attrs import frozen
from rich.progress import track
from spec import spec

import staged_axes as sa

assert "mujoco" not in sys.modules, "the record is complete before MuJoCo is imported"

import mujoco  # noqa: E402
import picture  # noqa: E402
from model import Draw, advance, draw, edited, first, start  # noqa: E402
from mujoco import mjx  # noqa: E402

STEPS = 20  # in one call; the progress bar moves between calls
CALLS = 15
CHECKED = 3  # worlds that are simulated one by one too
# m or rad. Whether the sled sticks or slips is now and then decided by rounding.
ROUNDING = 1e-2


@frozen
class Rollout:
    """What became of the worlds of one model.

    Shapes:
      `paths` is `(worlds, steps, 2)`: the way of the sled in m, and the angle of the
      pendulum in rad. `one_by_one` has the first worlds of these. `times` is in s.
    """

    title: str
    model_v: mjx.Model
    bound: sa.BoundAxes
    drawn: Draw
    times: np.ndarray
    paths: np.ndarray
    one_by_one: np.ndarray
    seconds: float

    def error(self) -> float:
        """The largest difference between the one call and the loop."""
        batched = self.paths[: len(self.one_by_one)]
        return float(np.max(np.abs(batched - self.one_by_one)))


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate both models; 1 where the one call and the loop differ."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--worlds", type=int, default=2048)
    parser.add_argument("--calls", type=int, default=CALLS, help=f"{STEPS} steps each")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "output")
    options = parser.parse_args(argv)

    before = simulate("as it was", first(), options.worlds, options.calls)
    report(before)
    print(before.bound)

    title = "edited: longer rod, Newton, renamed motor"
    after = simulate(title, edited(), options.worlds, options.calls)
    report(after)
    print(repr(after.bound))
    print("Plain jax.vmap, with the axes of the model as it was:")
    print(f"  {refusal(after, before.bound.in_axes)}")

    path = options.output / "worlds.png"
    picture.save(path, [before, after])
    print(f"\nPicture: {path}")
    return 0 if max(before.error(), after.error()) < ROUNDING else 1


def simulate(title: str, model: mujoco.MjModel, worlds: int, calls: int) -> Rollout:
    """Draw the worlds of a model, and simulate all of them at once."""
    one, drawn = mjx.put_model(model), draw(worlds)
    model_v = spec.vary(one, drawn.arrays(model))
    bound = spec.bind(model_v, like=one)

    begun = time.perf_counter()
    fast = sa.batch(partial(advance, steps=STEPS), in_axes=(spec, 0))
    numbers = track(range(calls), description=f"{worlds:,} worlds")
    paths = follow(fast, model_v, start(one, worlds), numbers)
    seconds = time.perf_counter() - begun

    plain = jax.jit(partial(advance, steps=STEPS))
    one_by_one = [
        follow(plain, bound.take(model_v, k), start(one), range(calls))
        for k in range(min(CHECKED, worlds))
    ]
    return Rollout(
        title=title,
        model_v=model_v,
        bound=bound,
        drawn=drawn,
        times=np.arange(1, paths.shape[1] + 1) * model.opt.timestep,
        paths=paths,
        one_by_one=np.stack(one_by_one),
        seconds=seconds,
    )


def follow(
    fn: Callable[..., tuple[dict[str, jax.Array], jax.Array]],
    model: mjx.Model,
    state: dict[str, jax.Array],
    calls: Sequence[int],
) -> np.ndarray:
    """The path that some calls give, each from where the one before it ended."""
    paths = []
    for _ in calls:
        state, path = fn(model, state)
        paths.append(np.asarray(path))
    return np.concatenate(paths, axis=-2)


def report(found: Rollout) -> None:
    """Print how far the worlds spread, and that the loop agrees."""
    way, angle = np.moveaxis(found.paths, -1, 0)
    worlds, steps = way.shape
    print(
        f"\n{found.title}\n\n"
        f"  {steps} steps of {worlds:,} worlds: {found.seconds:.1f} s with compiling\n"
        f"  the sled ends between {way[:, -1].min():.2f} and {way[:, -1].max():.2f} m, "
        f"the pendulum swings up to {np.degrees(np.abs(angle).max()):.0f} degrees\n"
        f"  check: {len(found.one_by_one)} of them, one by one, differ by "
        f"{found.error():.0e} at most\n"
    )


def refusal(found: Rollout, in_axes: mjx.Model) -> str:
    """What plain `jax.vmap` says to the axes of another model, in short."""
    one_step = partial(advance, steps=1)
    try:
        jax.eval_shape(
            jax.vmap(one_step, in_axes=(in_axes, None)),
            found.model_v,
            start(found.model_v),
        )
    except ValueError as error:
        line = str(error).split("\n")[0].strip()
        return f"{line}\n  ... and so on, for {len(str(error)):,} characters"
    return "accepted"


if __name__ == "__main__":
    sys.exit(main())
