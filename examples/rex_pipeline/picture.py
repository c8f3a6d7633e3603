"""The picture: how well each candidate explains the recording, a panel a pipeline."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

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
# The far end of this map is left out: it is darker than the night behind it.
EMBERS = ListedColormap(matplotlib.colormaps["inferno_r"](np.linspace(0, 0.82, 256)))


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
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(11, 5.4), layout="constrained")
        panels = figure.subplots(ncols=len(scores), sharex=True, sharey=True)
        for panel, (title, score) in zip(panels, scores.items(), strict=True):
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
            panel.axvline(truth[0], **line)
            panel.axhline(truth[1], **line, label="hidden truth")
            ring = {"ls": "none", "marker": "o", "ms": 13, "mec": TEAL, "mfc": "none"}
            panel.plot(moment[best], delay[best], **ring, label="best candidate")
            panel.set_title(title, pad=12)
            panel.set_xlabel(r"mass $\times$ length  [g m]")
        panels[0].set_ylabel("total delay  [ms]")
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            frameon=False,
            loc="outside lower center",
            ncols=2,
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
