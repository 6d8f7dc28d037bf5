"""A format's way from its files into the DuckDB file, and what others offer for a part of that way.

Ours is timed from the open, empty database to the closed file: read, check, bring into units, drop
repeats, commit, checkpoint. Alternatives are timed from the file to what they come to, which is
less, and named so.
"""

import contextlib
import importlib
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks import databases
from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.table import Other, Row, number

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

NEARLY = 0.9  # files end with whole records, and amounts near the one wanted


@dataclass(frozen=True)
class Alternative:
    """Another way to read a format: `read(path, empty folder)`; modules it needs, not timed."""

    name: str
    read: Callable[[Path, Path], None]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Format:
    """A source format with its budget.

    full: from this amount on a run is held against the budget; fixed costs weigh in smaller ones.
    unit, per_unit: how amounts are written, as 1e3 and "k rows". budget_per_s: amount, None: none.
    others_max: so much is given to the alternatives, whose times are projected to the whole.
    is_a_row_each: whether what is counted comes to a raw row each, none less.
    """

    name: str
    source: str
    unit: str
    per_unit: float
    budget_per_s: float | None
    alternatives: Sequence[Alternative]
    full: int = 0
    options: ReadOptions = field(default_factory=ReadOptions)
    others_max: int | None = None
    is_a_row_each: bool = False

    def rate(self, amount, seconds):
        """Return a speed as people write it."""
        return f"{number(amount / seconds / self.per_unit)} {self.unit}/s"


@dataclass(frozen=True)
class Files:
    """A format and the maker of its files: `write(path, amount)` returns the true amount."""

    format: Format
    write: Callable[[Path, int], int]


def measure_files(files, share, repeats, run):
    """Write files of a share of the usual amount, read them all ways, return the row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = max(1, round(files.format.full * share))
        amount = files.write(folder / "files", wanted)
        path, most = folder / "files", files.format.others_max
        theirs = path, amount
        if most is not None and most < wanted:
            theirs = folder / "fewer", files.write(folder / "fewer", most)
        costs = [
            run(_read, files.format, path, folder / f"{i}.duckdb", amount) for i in range(repeats)
        ]
        return row(files.format, amount, costs, others(files.format, *theirs, amount, repeats, run))


def measure(form, path, database, amount, repeats, run):
    """Read files that are there into a new database, of which the last stays; return the row."""
    costs = []
    for _ in range(repeats):
        database.unlink(missing_ok=True)
        costs.append(run(_read, form, path, database, amount))
    return row(form, amount, costs, others(form, path, amount, amount, repeats, run))


def row(form, amount, costs, found):
    """Return the row of a format: the best of its runs, with the median and the worst."""
    best = min(costs, key=lambda cost: cost.wall_s)
    median, worst = (find(cost.wall_s for cost in costs) for find in (statistics.median, max))
    spread = f" (median {form.rate(amount, median)}, worst {form.rate(amount, worst)})"
    speed, budget = amount / best.wall_s, form.budget_per_s
    return Row(
        f"ingest {form.name}, {number(amount / form.per_unit)} {form.unit}",
        form.rate(speed, 1) + (spread if len(costs) > 1 else ""),
        best,
        "-" if budget is None else f">= {form.rate(budget, 1)}",
        None if budget is None or amount < form.full * NEARLY else speed >= budget,
        found,
    )


def others(form, path, given, amount, repeats, run):
    """Time the alternatives, the best of `repeats`, projected from what was given to `amount`."""
    found = []
    for alternative in form.alternatives:
        costs = [run(_read_otherwise, alternative, path) for _ in range(repeats)]
        if None in costs:
            found.append(Other(alternative.name, None, "not installed"))
            continue
        best, times = min(costs, key=lambda cost: cost.wall_s), amount / given
        scaled = Cost(best.wall_s * times, best.cpu_s * times)
        found.append(Other(alternative.name, scaled, "" if given == amount else "projected"))
    return found


def _read(form, path, database, amount):
    """Read files into a database and close it; all must be loaded."""
    with contextlib.closing(databases.opened(database)) as store, Meter() as meter:
        summary = ingest(store, form.source, [path], form.options)
        store.close()
    expected = amount if form.is_a_row_each else None
    if summary.rejects or not summary.rows_new or expected not in {None, _most(summary)}:
        raise SystemExit(f"{form.name}: not all was read: expected {amount}, found {summary}")
    return meter.cost


def _most(summary):
    """Return the rows of the table that got most: others come along, as counters of readings."""
    return max(summary.rows_by_table.values())


def _read_otherwise(alternative, path):
    """Let an alternative read files; None where it is not installed."""
    try:
        for module in alternative.needs:
            importlib.import_module(module)
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder, Meter() as meter:
        alternative.read(path, Path(folder))
    return meter.cost
