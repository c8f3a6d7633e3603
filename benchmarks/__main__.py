"""Measure everything and print the table."""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import jax
from rich.console import Console
from rich.progress import Progress

from benchmarks.measure import Amount, Effort, Ratio, Row, measure
from benchmarks.suite import FULL, QUICK, benchmarks
from benchmarks.table import heading, table

_WIDE = 200  # columns, where no terminal says how many there are


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("words", nargs="*", help="only rows that hold one of these")
    parser.add_argument("--quick", action="store_true", help="only see that it runs")
    parser.add_argument("--markdown", action="store_true", help="a table to paste")
    options = parser.parse_args(argv)
    if not hasattr(jax.lax, "optimization_barrier"):
        parser.error(f"JAX {jax.__version__} has no jax.lax.optimization_barrier")

    chosen = [
        benchmark
        for benchmark in benchmarks(quick=options.quick)
        if not options.words or any(word in benchmark.what for word in options.words)
    ]
    rows = list(run(chosen, QUICK if options.quick else FULL))

    console = Console()
    if options.markdown or not console.is_terminal:
        console = Console(width=_WIDE)
    console.print(heading(), table(rows, markdown=options.markdown), highlight=False)


def run(chosen: Sequence[Ratio | Amount], effort: Effort) -> Iterator[Row]:
    """Measure each in a new process: no row meets what another left behind."""
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(chosen))
        for benchmark in chosen:
            progress.update(task, description=benchmark.what)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                row = process.submit(measure, benchmark, effort).result()
            progress.print(f"{row.what}: {row.measured}", highlight=False)
            progress.advance(task)
            yield row


if __name__ == "__main__":
    main()
