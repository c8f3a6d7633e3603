"""The picture: the paths of all worlds, coloured by what was drawn for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from run import Rollout

NIGHT, DAY, DUSK = "#10131c", "#f4f1ea", "#8a90a2"
STYLE = {
    "axes.edgecolor": DUSK,
    "axes.facecolor": NIGHT,
    "axes.labelcolor": DAY,
    "axes.spines.bottom": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.xmargin": 0,
    "figure.facecolor": NIGHT,
    "font.size": 11,
    "text.color": DAY,
    "xtick.color": DUSK,
    "ytick.color": DUSK,
}


def bright(name: str) -> ListedColormap:
    """A reversed colour map, without the end that is as dark as the night behind it.

    Reversed, because the worlds that move most are few, and should shine.
    """
    return ListedColormap(matplotlib.colormaps[name](np.linspace(1, 0.28, 256)))


def save(path: Path, rollouts: Sequence[Rollout]) -> None:
    """Write a PNG with a column for each model."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 7), layout="constrained")
        sleds, pendulums = figure.subplots(
            2, len(rollouts), sharex=True, sharey="row", squeeze=False
        )
        cold = ScalarMappable(Normalize(0.02, 0.35), bright("viridis"))
        warm = ScalarMappable(Normalize(0.1, 1.0), bright("magma"))
        for sled, pendulum, found in zip(sleds, pendulums, rollouts, strict=True):
            way, angle = np.moveaxis(found.paths, -1, 0)
            draw_lines(sled, found.times, way, found.drawn.friction, cold)
            draw_lines(pendulum, found.times, np.degrees(angle), found.drawn.mass, warm)
            sled.set_title(found.title, pad=12)
            pendulum.set_xlabel("time  [s]")
        sleds[0].set_ylabel("sled  [m]")
        pendulums[0].set_ylabel("pendulum  [deg]")
        for panels, colours, label in (
            (sleds, cold, "friction of the runner"),
            (pendulums, warm, "mass of the pendulum  [kg]"),
        ):
            bar = figure.colorbar(colours, ax=panels, aspect=18, label=label, pad=0.015)
            bar.outline.set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)


def draw_lines(
    panel: Axes,
    times: np.ndarray,
    lines: np.ndarray,
    numbers: np.ndarray,
    colours: ScalarMappable,
) -> None:
    """One panel: a line for each world, in the order in which they were drawn."""
    points = np.stack(np.broadcast_arrays(times, lines), axis=-1)
    alpha = float(np.clip(250 / len(lines), 0.1, 1))
    panel.add_collection(
        LineCollection(points, colors=colours.to_rgba(numbers), lw=0.6, alpha=alpha)
    )
    panel.axhline(0, color=DUSK, lw=0.6, alpha=0.5, zorder=0)
    panel.autoscale_view()
