"""Accounting text end to end into the DuckDB file, beside what others would do with it.

    python tests/benchmarks/bench_slurm.py --rows 1000000

Prints one row: work, budget, ours, the alternatives. Ours checks every line, expands host lists,
reads TRES texts, makes typed rows, drops repeats and commits; the alternatives load the same file
as columns of text and numbers, without checks, keys or rejects.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from goodput_ingest.load import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET_ROWS_PER_S = 300_000
SEPARATOR = "\x1f"
FIELDS = (
    *("Cluster", "JobID", "JobIDRaw", "DBIndex", "User", "Account", "QOS", "Partition"),
    *("Reservation", "State", "ExitCode", "DerivedExitCode", "Reason", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "NodeList", "ReqTRES"),
    *("AllocTRES", "Flags", "Comment", "JobName"),
)
STATES = (*["COMPLETED"] * 8, "FAILED", "TIMEOUT", "CANCELLED by 1001")
NODES = (1, 1, 1, 1, 2, 4, 16)  # of a job; most have one
SUBMITTED_S = 1_790_000_000


def record(number: int, chance: random.Random) -> str:
    """Return a line as `sacct -P` prints a job that ended."""
    submit = SUBMITTED_S + number // 3
    start, elapsed = submit + chance.randrange(3_000), chance.randrange(20, 90_000)
    nodes, first = chance.choice(NODES), chance.randrange(1, 1_000)
    gpus = 8 * nodes if nodes > 1 else chance.choice((0, 1, 2, 4, 8))
    listed = f"node{first:04d}" if nodes == 1 else f"node[{first:04d}-{first + nodes - 1:04d}]"
    tracked = f"gres/gpu:h100={gpus},gres/gpu={gpus}," if gpus else ""
    tres = f"billing={gpus * 8},cpu={gpus * 16 or 4},{tracked}mem={gpus * 100 or 16}G,node={nodes}"
    values = (
        *("lab", number, number, 2_798_573_628_998_235_136 + number),
        *(f"user{chance.randrange(200)}", f"acct{chance.randrange(30)}", "normal", "gpu", ""),
        *(chance.choice(STATES), "0:0", "0:0", "None", submit, submit, start, start + elapsed),
        *(elapsed, "00:00:00", 1_440, nodes, listed, tres, tres, "STARTED_ON_SCHEDULE", ""),
        f"train-{chance.randrange(5_000)}",
    )
    return SEPARATOR.join(map(str, values))


def write_accounting(file: Path, rows: int) -> None:
    """Write so many records of a made-up cluster, the same ones every time."""
    chance = random.Random(7)  # noqa: S311 -- a made-up cluster, no secret
    with file.open("w") as out:
        out.write(SEPARATOR.join(FIELDS) + "\n")
        out.writelines(record(number, chance) + "\n" for number in range(1, rows + 1))


def ours(file: Path, folder: Path, rows: int) -> float:
    """Read the file into a database and close it; return seconds without making its tables."""
    store = LocalStore(folder / "ours.duckdb")
    with contextlib.closing(store):
        start = time.perf_counter()
        summary = ingest(store, "slurm", [file], ReadOptions())
    seconds = time.perf_counter() - start
    if summary.rejects or summary.rows_new != rows:
        raise SystemExit(f"the accounting was not read whole: {summary}")
    return seconds


def pandas_read_csv(file: Path, folder: Path, rows: int) -> float:
    """Read all at once, types guessed, and insert the frame into a table."""
    import pandas as pd  # noqa: PLC0415 -- an alternative, not a dependency

    start = time.perf_counter()
    frame = pd.read_csv(file, sep=SEPARATOR, low_memory=False)
    with contextlib.closing(duckdb.connect(folder / "pandas.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute("create table job_runs as select * from frame")
        count = connection.execute("select count(*) from job_runs").fetchall()
    return _checked(count, rows, start)


def duckdb_read_csv(file: Path, folder: Path, rows: int) -> float:
    """Let the database read the file, types guessed."""
    start = time.perf_counter()
    with contextlib.closing(duckdb.connect(folder / "duckdb.duckdb")) as connection:
        connection.execute(
            "create table job_runs as select * from read_csv($1, delim = $2, header = true)",
            [str(file), SEPARATOR],
        )
        count = connection.execute("select count(*) from job_runs").fetchall()
    return _checked(count, rows, start)


def _checked(count: object, rows: int, start: float) -> float:
    """Return the seconds since `start`; all rows must be there."""
    if count != [(rows,)]:
        raise SystemExit(f"an alternative read {count}, expected {rows} rows")
    return time.perf_counter() - start


def rows_per_s(work: Callable[[Path, Path, int], float], file: Path, rows: int) -> float:
    """Return the speed of one run into an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return rows / work(file, Path(folder), rows)


def main() -> None:
    """Print the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3, help="The best of so many runs counts.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sacct.txt")
        write_accounting(file, arguments.rows)
        best = max(rows_per_s(ours, file, arguments.rows) for _ in range(arguments.repeats))
        others = []
        for work in (pandas_read_csv, duckdb_read_csv):
            try:
                speed = f"{rows_per_s(work, file, arguments.rows) / 1e3:.0f} k"
            except ImportError:
                speed = "not installed"
            others.append(f"{work.__name__} {speed}")
    print(  # noqa: T201 -- a table is what it is for
        f"| sacct text, {arguments.rows:,} rows, {os.cpu_count()} cores "
        f"| {BUDGET_ROWS_PER_S / 1e3:.0f} k rows/s | {best / 1e3:.0f} k rows/s "
        f"| {', '.join(others)} |"
    )


if __name__ == "__main__":
    main()
