"""Records that travel: between processes, and from version to version."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import staged_axes as sa
from kept_names import Robot

TESTS = Path(__file__).parent
KEPT = TESTS / "data" / "record_v1.json"
KEPT_NNX = TESTS / "data" / "record_v1_nnx.json"


def robot():
    """A value that the kept record fits, three examples of it."""

    def arm():
        return {
            "gains": {"p": np.ones((2, 3))},
            "mass": np.ones(3),
            "offset": np.ones(2),
        }

    return Robot(
        arm=arm(),
        spare=arm(),
        wheels=[
            {"drag": np.ones(3), "size": np.ones((3, 4))},
            {"drag": np.ones((2, 3)), "size": np.ones(3)},
        ],
        net={
            "bias": np.ones(2),
            "embedding": np.ones(2),
            "kernel": np.ones((3, 2)),
            "odd name": np.ones(2),
            "scale": np.ones(3),
        },
        order=5,
        extra=None,
        label="left",
    )


AXES = {
    "arm": (1, 0, None),
    "spare": (1, 0, None),
    "wheels": (0, 0, 1, 0),
    "net": (None, None, 0, None, 0),
    "order": (None,),
}


def test_kept_record():
    """What version 1 wrote means today what it meant then."""
    spec = sa.AxesBuilder.from_json(KEPT.read_text())
    bound = spec.bind(robot())
    assert bound.leaf_axes == sum(AXES.values(), ())
    assert "vehicle  robot.py:15" in bound.table().plain()


def test_kept_record_is_written_the_same():
    """What is read of it and written again is the same text, but for numbers."""
    spec = sa.AxesBuilder.from_json(KEPT.read_text())
    assert json.loads(spec.to_json()) == json.loads(KEPT.read_text())


def test_kept_filter():
    """A filter of nnx that version 1 wrote means what it meant."""
    pytest.importorskip("flax.nnx", exc_type=ImportError)
    spec = sa.AxesBuilder.from_json(KEPT_NNX.read_text())
    value = {"bias": np.ones(3), "kernel": np.ones((3, 2))}
    assert spec.bind(value).leaf_axes == (None, 0)
    assert json.loads(spec.to_json()) == json.loads(KEPT_NNX.read_text())


def test_kept_record_goes_on():
    """Its stages are still told apart: a later one that disagrees is a conflict."""
    spec = sa.AxesBuilder.from_json(KEPT.read_text())
    pipe = sa.Pipeline(spec=spec)

    @pipe.stage
    def later(axes, state):
        axes.wheels[1].drag = 0
        return state

    with pytest.raises(sa.ConflictError, match=r"spec\.wheels\[1\]\.drag") as caught:
        pipe.run(robot())
    assert [p.stage for p in caught.value.problems] == ["fix", "later"]


WRITE = """
import sys
import staged_axes as sa

class World:
    def record(self, axes):
        axes.mass = 0
        axes.links[:].length = 1

class Delays:
    def record(self, axes):
        sa.rule(axes, "**/delay", sa.optional(0))
        axes.rate = sa.STATIC

pipe = sa.Pipeline(default=None)
pipe.add("world", World())
pipe.add("delays", Delays())
sys.stdout.write(pipe.record().to_json())
"""

RUN = """
import sys
import numpy as np
import staged_axes as sa

spec = sa.AxesBuilder.from_json(sys.stdin.read())
value = {
    "mass": np.arange(3.0),
    "links": [{"length": np.arange(6.0).reshape(2, 3), "delay": np.arange(3.0)}],
    "rate": 2,
    "gravity": np.float32(10.0),
}

def fn(v):
    assert v["rate"] == 2
    link = v["links"][0]
    return v["mass"] * v["gravity"] + link["length"].sum() * v["rate"] - link["delay"]

print(*map(float, spec.batch(fn)(value)))
print(spec.bind(value))
"""


def in_process(code, text=""):
    """What a program prints, run in a process of its own."""
    root = str(Path(sa.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": root, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes():
    """A record that one process wrote is bound and run in another."""
    printed = in_process(RUN, in_process(WRITE))
    expected = [
        i * 10.0 + (i + (i + 3)) * 2 - i  # mass, both lengths, delay of example i
        for i in range(3)
    ]
    lines = printed.splitlines()
    assert [float(x) for x in lines[0].split()] == expected
    assert "world  string:7" in printed
