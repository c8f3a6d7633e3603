"""Importing the package, each time in a new interpreter."""

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial

from benchmarks.measure import Stopwatch

_CODE = """
import time
begun = time.process_time()
import {}
print(time.process_time() - begun)
"""


def imports() -> Mapping[str, Stopwatch]:
    """Against JAX, which it imports."""
    modules = {"staged_axes": "staged_axes", "import jax": "jax"}
    peers = {"equinox": "equinox", "flax": "flax"}
    return {name: partial(_seconds, m) for name, m in (modules | peers).items()}


def _seconds(module: str) -> float:
    """How long one import takes, without the start of the interpreter.

    From bytecode, as what pip has installed: the first turn writes that of a checkout.
    """
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", _CODE.format(module)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return float(run.stdout)
