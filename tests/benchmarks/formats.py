"""A format's way from its files into the DuckDB file, and what others offer for a part of that way.

Ours is timed from the open, empty database to the closed file: read, check, bring into units, drop
repeats, commit, checkpoint. Alternatives are timed from the file to what they come to, which is
less, and named so.
"""

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.meter import Cost, Meter
from tests.benchmarks.table import Other, Row, number

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore

NEARLY = 0.9  # files end with whole records, and amounts near the one wanted


@dataclass(frozen=True, kw_only=True)
class Format:
    """A source format with its budget.

    unit, per_unit: how amounts are written, as 1e3 and "k rows".
    full: from this amount on a run is held against the budget; fixed costs weigh in smaller ones.
    write: `write(path, amount)` makes files and returns the true amount; None: they are there.
    others: by name, `read(path, empty folder)`. others_max: so much is given to them, whose times
    are projected to the whole.
    is_a_row_each: whether what is counted comes to a raw row each, none less.
    """

    name: str
    source: str
    unit: str
    per_unit: float
    budget_per_s: float
    full: int
    others: Mapping[str, Callable[[Path, Path], None]]
    write: Callable[[Path, int], int] | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    others_max: int | None = None
    is_a_row_each: bool = False

    def rate(self, amount):
        """Return a speed as people write it."""
        return f"{number(amount / self.per_unit)} {self.unit}/s"


def measure_generated(form, share, repeats, run):
    """Write files of a share of the usual amount, read them all ways, return the row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = max(1, round(form.full * share))
        theirs = path, amount = folder / "files", form.write(folder / "files", wanted)
        if form.others_max is not None and form.others_max < wanted:
            theirs = folder / "fewer", form.write(folder / "fewer", form.others_max)
        return measure(form, path, folder / "read.duckdb", amount, repeats, run, theirs)


def measure(form, path, database, amount, repeats, run, theirs=None):
    """Read files into a new database, of which the last stays; return the row of the best run.

    theirs: what the alternatives read, and how much that is; None: the same.
    """
    costs = []
    for _ in range(repeats):
        database.unlink(missing_ok=True)
        costs.append(run(_read, form, path, database, amount))
    best = min(costs, key=lambda cost: cost.wall_s)
    speed = amount / best.wall_s
    return Row(
        f"ingest {form.name}, {number(amount / form.per_unit)} {form.unit}", form.rate(speed), best,
        f">= {form.rate(form.budget_per_s)}",
        None if amount < form.full * NEARLY else speed >= form.budget_per_s,
        _others(form, *(theirs or (path, amount)), amount, repeats, run),
    )  # fmt: skip


def _others(form, path, given, amount, repeats, run):
    """Time the alternatives, the best of `repeats`, projected from what was given to `amount`."""
    found = []
    for name, read in form.others.items():
        try:
            costs = [run(_read_otherwise, read, path) for _ in range(repeats)]
        except ImportError:
            found.append(Other(name, None, "not installed"))
            continue
        best, times = min(costs, key=lambda cost: cost.wall_s), amount / given
        scaled = Cost(best.wall_s * times, best.cpu_s * times)
        found.append(Other(name, scaled, "" if given == amount else "projected"))
    return found


def _read(form, path, database, amount):
    """Read files into a database and close it; all must be loaded."""
    with contextlib.closing(LocalStore(database)) as store, Meter() as meter:
        summary = ingest(store, form.source, [path], form.options)
        store.close()
    # others come along, as counters of readings
    most = max(summary.rows_by_table.values(), default=0)
    if summary.rejects or not most or (form.is_a_row_each and most != amount):
        raise SystemExit(f"{form.name}: not all was read: expected {amount}, found {summary}")
    return meter.cost


def _read_otherwise(read, path):
    with tempfile.TemporaryDirectory() as folder, Meter() as meter:
        read(path, Path(folder))
    return meter.cost
