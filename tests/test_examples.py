"""The programs in examples/, run as a user runs them."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(find_spec("rex") is None, reason="rex-lib is not installed")
def test_rex_pipeline(tmp_path):
    """One record serves two pipelines, and each agrees with its one-by-one check."""
    # A new interpreter, because the example insists that rex is not imported yet.
    run = subprocess.run(
        [
            sys.executable,
            "examples/rex_pipeline/run.py",
            "--candidates=8",
            f"--output={tmp_path}",
        ],
        cwd=ROOT,
        # The example compiles much and computes little.
        env={**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("8 in one call") == 2
    assert "world  examples/rex_pipeline/spec.py" in run.stdout  # who decided
    assert "2 structures, 1 compiled, scores differ by 0e+00 rad" in run.stdout
    assert "4 of 128 leaves mapped" in run.stdout
    assert "vmap in_axes" in run.stdout
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(find_spec("mujoco") is None, reason="mujoco-mjx is not installed")
def test_mjx_randomisation(tmp_path):
    """One record serves a model and its edit; each agrees with its one-by-one check."""
    run = subprocess.run(
        [
            sys.executable,
            "examples/mjx_randomisation/run.py",
            "--worlds=4",
            "--calls=1",
            f"--output={tmp_path}",
        ],
        cwd=ROOT,
        env={**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("20 steps of 4 worlds") == 2
    assert "randomise  examples/mjx_randomisation/spec.py" in run.stdout
    assert "3 of 124 leaves mapped" in run.stdout
    assert "vmap in_axes" in run.stdout
    assert (tmp_path / "worlds.png").read_bytes().startswith(b"\x89PNG")
