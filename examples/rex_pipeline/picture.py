"""The picture: how well each candidate explains the recording, a panel a pipeline."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.colors import ListedColormap, LogNorm  # noqa: E402
from matplotlib.ticker import LogLocator  # noqa: E402

NIGHT, DAY, DUSK, TEAL = "#10131c", "#f4f1ea", "#8a90a2", "#5fd7c8"
STYLE = {
    "axes.edgecolor": DUSK,
    "axes.facecolor": NIGHT,
    "axes.labelcolor": DAY,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "figure.facecolor": NIGHT,
    "font.size": 11,
    "text.color": DAY,
    "xtick.color": DUSK,
    "ytick.color": DUSK,
}
# The last of the map is darker than the night behind it.
EMBERS = ListedColormap(plt.colormaps["inferno_r"](np.linspace(0, 0.82, 256)))


def save(
    path: Path,
    candidates: np.ndarray,
    truth: np.ndarray,
    scores: Mapping[str, np.ndarray],
) -> None:
    """Write a PNG with a panel for each entry of `scores`, whose key is its title.

    Shapes:
      `candidates` is `(2, n)` and `truth` `(2,)`: mass x length in g m, and the total
      delay in ms. Each of the `scores` is `(n,)`, in rad.
    """
    moment, delay = candidates
    norm = LogNorm(*np.percentile([*scores.values()], [1, 90]), clip=True)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            ncols=len(scores),
            figsize=(11, 5),
            layout="constrained",
            sharex=True,
            sharey=True,
        )
        for panel, (title, score) in zip(panels, scores.items()):
            order = np.argsort(-score)  # the best come last, and lie on top
            best = order[-1]
            dots = panel.scatter(
                moment[order],
                delay[order],
                c=score[order],
                s=12 + 60 * (1 - norm(score[order])) ** 2,
                cmap=EMBERS,
                norm=norm,
                linewidths=0,
            )
            line = {"color": TEAL, "lw": 1, "ls": (0, (1, 4))}
            panel.axhline(truth[1], **line, label="hidden truth")
            panel.axvline(truth[0], **line)
            panel.plot(
                moment[best],
                delay[best],
                "o",
                ms=13,
                mfc="none",
                mec=TEAL,
                label="best candidate",
            )
            panel.set_title(title, pad=12)
            panel.set_xlabel("mass × length  [g m]")
        panels[0].set_ylabel("total delay  [ms]")
        panels[-1].legend(
            bbox_to_anchor=(1, 1), frameon=False, loc="lower right", ncols=2
        )
        bar = figure.colorbar(
            dots,
            ax=panels,
            aspect=30,
            format="%g",
            label="score  [rad], lower is better",
            pad=0.02,
            ticks=LogLocator(subs=(1, 2, 5)),
        )
        bar.minorticks_off()
        bar.outline.set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)
