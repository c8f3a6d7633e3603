"""A benchmark as data, and how it is measured.

Sides take turns, so that noise hits all of them. Time is that of the processor, which
stands still where another process has its turn; on an idle machine both are the same.
"""

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median, quantiles
from typing import Any, TypeAlias

from attrs import frozen

Stopwatch: TypeAlias = Callable[[], float]
"""Does its job once and says how many seconds of the processor that took."""

_SAMPLE = 1e-3  # seconds: what is quicker is repeated within one turn
_LONG = 100  # a number from which digits behind the point say nothing


@frozen
class Ratio:
    """Times of several sides, as multiples of one of them.

    Attributes:
      what: What is timed.
      goal: The largest ratio that will do.
      sides: Makes a stopwatch for each side, by name: first ours, then the one that it
        is measured against, then peers.
    """

    what: str
    goal: float
    sides: Callable[[], Mapping[str, Stopwatch]]


@frozen
class Amount:
    """Something that is counted.

    Attributes:
      what: What is counted.
      goal: The largest amount that will do.
      unit: What it is counted in.
      count: The amount for each side, by name, ours first.
    """

    what: str
    goal: float
    unit: str
    count: Callable[[], Mapping[str, float]]


@frozen
class Effort:
    """When to stop taking turns.

    Attributes:
      turns: Never before this many.
      seconds: Not after this long, even where it has not settled.
      error: Not once the standard error of the median ratio is this part of it.
    """

    turns: int
    seconds: float
    error: float


@frozen
class Row:
    """One line of the table, as text; `is_met` says whether the goal is."""

    what: str
    against: str
    goal: str
    measured: str
    peers: str
    is_met: bool


def measure(benchmark: Ratio | Amount, effort: Effort) -> Row:
    """Runs one benchmark."""
    if isinstance(benchmark, Ratio):
        return _compare(benchmark, effort)
    return _count(benchmark)


def repeated(call: Callable[[], Any]) -> Stopwatch:
    """Times a call that can be made again and again."""
    number = 1
    call()  # compiles, fills caches
    while _timed(call, number) * number < _SAMPLE:
        number *= 2
    return lambda: _timed(call, number)


def once(prepare: Callable[[], Any], call: Callable[[Any], Any]) -> Stopwatch:
    """Times a call that needs something new each time, which is made off the clock."""

    def turn() -> float:
        new = prepare()
        return _timed(lambda: call(new), 1)

    turn()
    return turn


def _timed(call: Callable[[], Any], number: int) -> float:
    """Seconds for one of these calls, without garbage collection.

    Results are not waited for: small programs run within the call on a CPU, and on
    other devices what is timed is the call.
    """
    gc.disable()
    try:
        begun = time.process_time()
        for _ in range(number):
            call()
        return (time.process_time() - begun) / number
    finally:
        gc.enable()


def _compare(benchmark: Ratio, effort: Effort) -> Row:
    """The times of all sides, as multiples of the second one's."""
    times = _take_turns(benchmark.sides(), effort)
    ours, base, *peers = times
    ratio, error = _ratio(times[ours], times[base])
    return Row(
        what=benchmark.what,
        against=f"{base}, {_duration(median(times[base]))}",
        goal=f"≤ {_number(benchmark.goal)}",
        measured=f"{ratio:.2f} ± {error:.2f}",
        peers=", ".join(
            f"{p} {_number(_ratio(times[p], times[base])[0])}" for p in peers
        ),
        is_met=ratio <= benchmark.goal,
    )


def _take_turns(
    sides: Mapping[str, Stopwatch], effort: Effort
) -> Mapping[str, list[float]]:
    """The times of each side, turn by turn, until the first ratio has settled."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    ours, base, *_ = times.values()
    order, end = list(sides), time.monotonic() + effort.seconds
    while len(ours) < effort.turns or (
        time.monotonic() < end and not _has_settled(ours, base, effort.error)
    ):
        for name in order:
            times[name].append(sides[name]())
        order.reverse()  # whoever went first goes last, as in A B B A
    return times


def _has_settled(times: list[float], base: list[float], part: float) -> bool:
    """Is the standard error no more than this part of the ratio?"""
    ratio, error = _ratio(times, base)
    return error <= part * ratio


def _ratio(times: list[float], base: list[float]) -> tuple[float, float]:
    """The median of the turns' ratios and its standard error."""
    ratios = [a / b for a, b in zip(times, base, strict=True)]
    low, middle, high = quantiles(ratios, n=4)
    # For a normal distribution: 1.253 / sqrt(n) deviations, and the quartiles are
    # 1.349 deviations apart.
    return middle, 0.93 * (high - low) / len(ratios) ** 0.5


def _duration(seconds: float) -> str:
    """Seconds with three digits, in the unit that suits them."""
    unit, scale = next(
        pair for pair in [("s", 1), ("ms", 1e3), ("µs", 1e6)] if seconds * pair[1] >= 1
    )
    return f"{seconds * scale:.3g} {unit}"


def _count(benchmark: Amount) -> Row:
    """Counts, once."""
    amounts = dict(benchmark.count())
    ours, *peers = amounts
    return Row(
        what=benchmark.what,
        against="",
        goal=f"≤ {_number(benchmark.goal)} {benchmark.unit}".rstrip(),
        measured=_number(amounts[ours]),
        peers=", ".join(f"{p} {_number(amounts[p])}" for p in peers),
        is_met=amounts[ours] <= benchmark.goal,
    )


def _number(amount: float) -> str:
    """A number with three digits, or all those before the point."""
    return f"{amount:,.0f}" if amount >= _LONG else f"{amount:.3g}"
