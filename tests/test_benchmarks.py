import io
import re
from functools import partial
from pathlib import Path

import jax
import pytest

pytest.importorskip("equinox", reason="equinox is a peer in the benchmarks")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def checkout(monkeypatch):
    """The benchmarks are found; they measure the package that is tested."""
    monkeypatch.syspath_prepend(str(ROOT))


def test_sides_take_turns():
    """A B B A, and the ratio is the median of the turns' ratios."""
    from benchmarks.measure import Effort, Ratio, Row, measure

    seconds = {
        "ours": iter([2.0, 9.0, 2.0, 2.0]),
        "theirs": iter([1.0, 1.0, 1.0, 1.0]),
        "peer": iter([3.0, 3.0, 3.0, 3.0]),
    }
    turns = []

    def turn(name):
        turns.append(name)
        return next(seconds[name])

    race = Ratio("race", 1.5, lambda: {name: partial(turn, name) for name in seconds})
    row = measure(race, Effort(turns=4, seconds=0, error=0))
    assert turns == ["ours", "theirs", "peer", "peer", "theirs", "ours"] * 2
    assert row == Row(
        what="race",
        against="theirs, 1 s",
        goal="≤ 1.5",
        measured="2.00 ± 2.44",  # 0.93 * (7.25 - 2) / sqrt(4)
        peers="peer 3",
        is_met=False,
    )


def test_turns_end_once_the_ratio_has_settled():
    """Turns that agree need no more than the least number."""
    from benchmarks.measure import Effort, Ratio, measure

    turns = []

    def turn(name):
        turns.append(name)
        return 1.0

    race = Ratio("race", 1, lambda: {name: partial(turn, name) for name in "ab"})
    row = measure(race, Effort(turns=3, seconds=60, error=0.01))
    assert turns == list("abbaab")
    assert row.is_met


def test_amounts_are_counted_once():
    """An amount has its unit beside the goal, and peers of its own."""
    from benchmarks.measure import Amount, Effort, Row, measure

    copied = Amount("copied", 8, "MiB", lambda: {"ours": 0.25, "a copy": 1024.0})
    assert measure(copied, Effort(turns=1, seconds=0, error=0)) == Row(
        what="copied",
        against="",
        goal="≤ 8 MiB",
        measured="0.25",
        peers="a copy 1,024",
        is_met=True,
    )


@pytest.mark.skipif(
    not hasattr(jax.lax, "optimization_barrier"),
    reason="this JAX has no jax.lax.optimization_barrier, which the benchmarks use",
)
def test_a_quick_row_runs():
    """What is timed in the first row can be called."""
    from benchmarks.measure import measure
    from benchmarks.suite import QUICK, benchmarks

    row = measure(benchmarks(quick=True)[0], QUICK)
    assert row.what == "call, 2 leaves"
    assert re.fullmatch(r"by hand, [\d.]+ µs", row.against)
    assert re.fullmatch(r"leaves [\d.]+, equinox [\d.]+(, nnx [\d.]+)?", row.peers)


def test_markdown_is_a_table():
    """Every line has the same bars, and a missed goal says no."""
    from rich.console import Console

    from benchmarks.measure import Row
    from benchmarks.table import table

    text = io.StringIO()
    rows = [Row("call", "by hand, 1 µs", "≤ 1", "2.00 ± 0.01", "", is_met=False)]
    Console(file=text, width=100).print(table(rows, markdown=True))
    assert [line for line in text.getvalue().split("\n") if line.strip()] == [
        "| what | against       | goal | measured    | peers | met |",
        "|------|---------------|------|-------------|-------|-----|",
        "| call | by hand, 1 µs | ≤ 1  | 2.00 ± 0.01 |       | no  |",
    ]
