"""Measure everything and print the table."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.progress import Progress

from benchmarks.measure import Amount, Effort, Ratio, Row, measure
from benchmarks.suite import FULL, QUICK, benchmarks
from benchmarks.table import markdown, table


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows that hold one of these")
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    parser.add_argument("--markdown", action="store_true", help="a table to paste")
    options = parser.parse_args(argv)

    chosen = [
        benchmark
        for benchmark in benchmarks(quick=options.quick)
        if not options.words or any(word in benchmark.what for word in options.words)
    ]
    rows = list(run(chosen, QUICK if options.quick else FULL))
    if options.markdown:
        print(markdown(rows))
    else:
        Console().print(table(rows))
    return 0


def run(chosen: Sequence[Ratio | Amount], effort: Effort) -> Iterator[Row]:
    """Measure each in a new process: no row meets what another left behind."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(chosen))
        for benchmark in chosen:
            progress.update(task, description=benchmark.what)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                yield process.submit(measure, benchmark, effort).result()
            progress.advance(task)


if __name__ == "__main__":
    sys.exit(main())
