"""What one further day costs when there is one day of history, and when there are many.

One generated day is loaded repeatedly, each time a day later and of other jobs, so that every
day is the same work. Each is loaded and built on top of those before it.
"""

import contextlib
import tempfile
from datetime import timedelta
from pathlib import Path

import polars as pl
from tests.benchmarks import bench_fleet
from tests.benchmarks.bench_fleet import START, Fleet
from tests.benchmarks.meter import Meter, median
from tests.benchmarks.table import Row
from tests.benchmarks.table import number as shown
from tests.evidence_over_time import evidence_of, load

from goodput_queries.database import LocalStore

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ALWAYS = {"gpus", "gpu_instances", "nodes", "rates"}  # loaded once, and valid for every day
NAMES = ("job_id", "job_id_raw", "job_name", "run_id", "comm_id", "name")  # other jobs every day
PID_STEP = 10_000_000
GROWTH_MOST = 1.2
DAYS_OF_BUDGET = 30
DAYS_COMPARED = 5


def measure(gpus, days, hours, run):
    """Return the row: the days after the first, and the last ones; `hours` of each are loaded.

    Medians, since once in many days the log is written into the file: the maximum is reported too.
    """
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), gpus, hours)
        bench_fleet.read_quietly(fleet, run)
        of_few, of_many = run(_days, fleet, days)
    few, many = (median(costs[-DAYS_COMPARED:]) for costs in (of_few, of_many))
    most = max(cost.wall_s for cost in of_many[1:])
    wall, cpu = many.wall_s / few.wall_s, many.cpu_s / few.cpu_s
    return Row(
        f"one further day of {gpus:,} GPUs after 1 and after {days - 1} days, load and build",
        f"{shown(few.wall_s)} s, {shown(many.wall_s)} s: {shown(wall)} x "
        f"(CPU {shown(few.cpu_s)}, {shown(many.cpu_s)}: {shown(cpu)} x); slowest day "
        f"{shown(most)} s",
        many,
        "a day costs the same with 30 days of history",
        wall <= GROWTH_MOST if days >= DAYS_OF_BUDGET else None,
    )


def _days(fleet, days):
    """Load and build day after day; return the cost of each day after few and after many.

    The days to compare are loaded in turns into a store that has one day and one that has all but
    them, since the speed of a machine changes within minutes. Every day must have one ledger.
    """
    with contextlib.closing(LocalStore(fleet.database)) as source:
        day = _closed(evidence_of(source), START.replace(tzinfo=None) + fleet.hours * HOUR)
    compared = min(DAYS_COMPARED, days - 1)
    with (
        contextlib.closing(LocalStore(fleet.folder / "few.duckdb")) as short,
        contextlib.closing(LocalStore(fleet.folder / "many.duckdb")) as long,
    ):
        few = [_reported(short, day, 0)]
        many = [_reported(long, day, number) for number in range(days - compared)]
        for number in range(compared):
            few.append(_reported(short, day, 1 + number))
            many.append(_reported(long, day, days - compared + number))
        _refuse_unequal_days(long, days)
    return few, many


def _reported(store, day, number):
    """Load a day and build; return what that cost."""
    came = _on(day, number)
    with Meter() as meter:
        for name, rows in came.items():
            load(store, name, rows, number)
        store.build()
    return meter.cost


def _closed(evidence, end):
    """Return the evidence with all that still runs at the end ended there."""
    until_end = pl.col("end_at").fill_null(pl.lit(end).cast(pl.Datetime("us")))
    runs, states = evidence["job_runs"], evidence["node_states"]
    return evidence | {
        "job_runs": runs.with_columns(
            end_at=until_end,
            state=pl.when(pl.col("end_at").is_null()).then(pl.lit("CANCELLED")).otherwise("state"),
        ),
        "node_states": states.filter(pl.col("start_at") < end).with_columns(end_at=until_end),
    }


def _on(day, number_of_day):
    """Return the day's evidence some days later, of other jobs."""
    reported = {n: rows for n, rows in day.items() if n not in ALWAYS or number_of_day == 0}
    return {name: _later(rows, number_of_day) for name, rows in reported.items()}


def _later(rows, days):
    schema = rows.schema
    moments = [name for name, kind in schema.items() if kind == pl.Datetime]
    names = [name for name in NAMES if name in schema]
    return rows.with_columns(
        pl.col(moments) + days * DAY,
        *(pl.lit(f"{days:02}").add(pl.col(name)).alias(name) for name in names),
        *(pl.col(name) + days * PID_STEP for name in ("pid",) if schema.get(name) == pl.Int64),
    )


def _refuse_unequal_days(store, days):
    """Raise SystemExit where days between the first and the last are not the same work."""
    by_day = store.read(
        """select (start_ms - $1) // 86400000 as day, category, sum(end_ms - start_ms)::bigint as ms
        from intermediate.int_ledger_segments
        group by all""",
        [int(START.timestamp()) * 1_000],
    )
    inner = by_day.filter(pl.col("day").is_between(1, days - 2))
    kinds = inner.group_by("category").agg(pl.col("ms").n_unique(), pl.len())
    odd = kinds.filter((pl.col("ms") > 1) | (pl.col("len") != max(days - 2, 0)))
    if not odd.is_empty():
        raise SystemExit(f"the repeated day has another ledger on other days: {odd.to_dicts()}")
