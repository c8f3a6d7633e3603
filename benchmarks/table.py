"""The rows as a table: on a terminal, or as Markdown for a README."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version

import jax
from rich.table import Table

from benchmarks.measure import Row

_COLUMNS = ("what", "against", "goal", "measured", "peers", "met")
_PACKAGES = ("staged_axes", "jax", "flax", "equinox")


def heading() -> str:
    """What was measured, and where."""
    versions = [f"{name} {version(name)}" for name in _PACKAGES]
    return ", ".join(
        [
            f"Python {platform.python_version()}",
            *versions,
            f"{os.cpu_count()} cores, {platform.machine()}, {jax.default_backend()}",
        ]
    )


def table(rows: Sequence[Row]) -> Table:
    """For a terminal."""
    drawn = Table(*_COLUMNS, title=heading())
    for row in rows:
        drawn.add_row(*_cells(row), style=None if row.is_met else "bold red")
    return drawn


def markdown(rows: Sequence[Row]) -> str:
    """The same to paste."""
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *map(_cells, rows)]
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{heading()}\n\n{drawn}"


def _cells(row: Row) -> Sequence[str]:
    """One row as text."""
    met = "yes" if row.is_met else "**no**"
    return row.what, row.against, row.goal, row.measured, row.peers, met
