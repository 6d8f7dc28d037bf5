"""`make bench`: one table of what the product does against its budgets and alternatives.

    python -m tests.benchmarks --gpus 1000 --hours 6 --days 7

Each work runs in a process of its own, so that its peak of memory is its own.
"""

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import (
    bench_fleet,
    bench_history,
    bench_live,
    bench_pages,
    bench_statement,
    formats,
    table,
    yardstick,
)
from tests.benchmarks.bench_fleet import Fleet
from tests.benchmarks.format_files import GENERATED
from tests.benchmarks.meter import alone, together

PARTS = ("ingest", "fleet", "live", "pages", "statement", "history")
SLICES, WARM, FILTERS = 3, 5, 12  # so often a short work is done


def options(arguments):
    """Return what is to be measured at which scale."""
    about = __doc__.splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=about)
    parser.add_argument("--gpus", type=int, default=1_000, help="of the fleet (1000)")
    parser.add_argument("--hours", type=int, default=6, help="of the fleet (6)")
    parser.add_argument("--days", type=int, default=7, help="of history, statements, 4 or more (7)")
    parser.add_argument("--history-gpus", type=int, default=128, help="of the history (128)")
    parser.add_argument(
        "--ingest", type=float, default=0.2, metavar="SHARE",
        help="of 1 M sacct rows, 300 MB of Inspector logs, 2 M lines, 3 M points (0.2)",
    )  # fmt: skip
    parser.add_argument(
        "--steps", nargs="*", choices=bench_fleet.STEPS, default=bench_fleet.STEPS,
        help="seconds of a step beside the yardstick's 60 (all of them)",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=1, help="of ingests; the best counts (1)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--folder", type=Path, help="for the files; the system's temporary one")
    parser.add_argument(
        "--smoke", action="store_true",
        help="whether it runs, not how fast: everything once, in one process",
    )  # fmt: skip
    return parser.parse_args(arguments)


def rows(chosen, folder):
    """Measure what is chosen, row by row."""
    run = together if chosen.smoke else alone
    of_yardstick = 100 * yardstick.GPUS if chosen.smoke else yardstick.ROWS
    before = yardstick.measure("before", of_yardstick, run)
    yield before
    yardstick_s = before.cost.wall_s if before.cost else 0.0
    if "ingest" in chosen.only:
        for form in GENERATED:
            yield formats.measure_generated(form, chosen.ingest, chosen.repeats, run)
    if {"fleet", "live", "pages", "statement"} & set(chosen.only):
        fleet = Fleet(folder, chosen.gpus, chosen.hours)
        yield bench_fleet.make(fleet, run)
        yield from bench_fleet.read(fleet, chosen.repeats, run)
        of_ledger = yield from bench_fleet.build(fleet, yardstick_s, run)
        slices = (1 if chosen.smoke else SLICES) if "live" in chosen.only else 0
        if slices:
            yield bench_live.measure(fleet, slices, yardstick_s, run)
        if "fleet" in chosen.only:
            yield from bench_fleet.build_other_steps(
                fleet, of_ledger, chosen.steps, slices, yardstick_s, run
            )
        if "pages" in chosen.only:
            yield from bench_pages.measure(
                fleet, 1 if chosen.smoke else WARM, 1 if chosen.smoke else FILTERS, run
            )
        if "statement" in chosen.only:  # the last: it adds days to the fleet's database
            yield from bench_statement.measure(fleet, chosen.days, run)
    if "history" in chosen.only:
        yield bench_history.measure(
            chosen.history_gpus, chosen.days, chosen.hours if chosen.smoke else 24, run
        )
    yield yardstick.measure("after", of_yardstick, run)


def main(arguments):
    """Print the table as it grows."""
    chosen, load = options(arguments), table.load()
    sys.stdout.write(table.header() + "\n")
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="bench-") as folder:
        for row in rows(chosen, Path(folder)):
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{datetime.now(UTC):%Y-%m-%d}, {table.machine()}; {table.busy(load)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
