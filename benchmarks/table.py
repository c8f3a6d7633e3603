"""The rows as a table: for a terminal, or as Markdown to paste into a README."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version

import jax
from rich import box
from rich.table import Table

from benchmarks.measure import Row

_COLUMNS = ("what", "against", "goal", "measured", "peers", "met")
_PACKAGES = ("staged_axes", "jax", "flax", "equinox")


def heading() -> str:
    """What was measured, and where."""
    versions = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    machine = f"{os.cpu_count()} {platform.machine()} cores"
    python = platform.python_version()
    return f"Python {python}, {versions}; {machine}, {jax.default_backend()}"


def table(rows: Sequence[Row], *, markdown: bool) -> Table:
    """One line for each row; a terminal shows in red what misses its goal."""
    drawn = Table(*_COLUMNS, box=box.MARKDOWN if markdown else box.SIMPLE_HEAD)
    for row in rows:
        met, style = ("yes", None) if row.is_met else ("no", "red")
        cells = (row.what, row.against, row.goal, row.measured, row.peers, met)
        drawn.add_row(*cells, style=style)
    return drawn
