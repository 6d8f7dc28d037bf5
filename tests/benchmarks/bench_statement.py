"""What statements cost with a history: of many days from the roll-ups, and one day's report.

The fleet's day is the last of the history. The days before it are copies of its hourly roll-ups
and of who its job runs belong to, under other names of jobs: what a statement of theirs reads, and
nothing of what it does not read (readings, segments, job events). All days are open, which is the
harder case: what a closed one came to is kept with it.
"""

import contextlib
import tempfile
from datetime import timedelta
from pathlib import Path

from tests.benchmarks.bench_fleet import START
from tests.benchmarks.meter import Meter
from tests.benchmarks.table import Row, memory, number

from goodput_billing.render import files
from goodput_billing.statement import window
from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.days import day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.database import LocalStore

MONTH_S, REPORT_S = 3.0, 10.0
DAYS_OF_BUDGET = 30
DAY_MS = 86_400_000
SETTINGS = StatementSettings(idle_policy="proportional", credit_infra_failures=True)
_JOB = "case when job_run_key is not null then format('{:02}/', day) || job_run_key end"
_HOUR = f"hour_ms - day::bigint * {DAY_MS}"
COPIED = {
    "marts.ledger_hourly_by_node": {"job_run_key": _JOB, "hour_ms": _HOUR},
    "marts.statement_hourly": {"job_run_key": _JOB, "hour_ms": _HOUR},
    "marts.statement_energy_hourly": {"job_run_key": _JOB, "hour_ms": _HOUR},
    "intermediate.int_job_run_owners": {
        "job_run_key": _JOB, "run_key": "format('{:02}/', day) || run_key",
    },
}  # fmt: skip


def measure(fleet, days, run):
    """Return the row of all days, then that of the last day's report with all its files."""
    run(_tell_days_before, fleet, days)
    is_of_budget = fleet.is_of_budget and days >= DAYS_OF_BUDGET
    lines, of_days = run(_of_days, fleet, days)
    yield Row(
        f"statement of {days} days, {fleet.name} each, from roll-ups",
        f"{number(of_days.wall_s)} s of {lines:,} lines by account and price", of_days,
        f"< {MONTH_S:g} s", of_days.wall_s < MONTH_S if is_of_budget else None,
    )  # fmt: skip
    made, written, size = run(_report, fleet)
    whole = made + written
    yield Row(
        f"report of the last day, all {len(files.FORMATS)} files",
        f"statement {number(made.wall_s)} s, files {number(written.wall_s)} s, "
        f"{number(size / 1e6)} MB, {memory(whole.peak_bytes)}",
        whole, f"< {REPORT_S:g} s", whole.wall_s < REPORT_S if is_of_budget else None,
    )  # fmt: skip


def _tell_days_before(fleet, days):
    """Copy the day's roll-ups onto the days before it."""
    with contextlib.closing(LocalStore(fleet.database)) as store, store.writing() as cursor:
        for table, changed in COPIED.items():
            reported = ", ".join(f"{how} as {name}" for name, how in changed.items())
            cursor.execute(
                f"""insert into {table}
                select * exclude (day) replace ({reported})
                from {table} cross join range(1, {days}) as of_days(day)"""
            )
        before_ms = (days - 1) * DAY_MS
        cursor.execute(f"update intermediate.int_clusters set first_ms = first_ms - {before_ms}")


def _of_days(fleet, days):
    """Reckon every day and add them up, as the Cost page does; every day must be the same."""
    first = START.date() - timedelta(days=days - 1)
    policy = Policy(SETTINGS.idle_policy, SETTINGS.credit_infra_failures)
    with contextlib.closing(LocalStore(fleet.database)) as store:
        with Meter() as meter:
            dates = [first + timedelta(days=n) for n in range(days)]
            lines = window.lines_of_days(store, [day_of(when, SETTINGS) for when in dates])
            summed = window.added_up(window.computed_of(of_day, policy) for of_day in lines)
        _refuse_unequal_days(lines, summed)
    return sum(of_day.height for of_day in lines), meter.cost


def _refuse_unequal_days(lines, summed):
    """Raise SystemExit where copies of a day are not that day, or do not add up."""
    of_days = {of_day["gpu_ms"].sum() for of_day in lines}
    if len(of_days) != 1 or 0 in of_days or summed["gpu_ms"].sum() != of_days.pop() * len(lines):
        raise SystemExit("the copied days have other GPU time than the day they are copies of")


def _report(fleet):
    """Make the last day's statement and write it; return what each took, and the bytes."""
    with (
        contextlib.closing(LocalStore(fleet.database)) as store,
        tempfile.TemporaryDirectory() as folder,
    ):
        with Meter() as meter:
            made = statement(store, START.date(), SETTINGS)
        with Meter() as writing:
            written = files.write(made, Path(folder), files.FORMATS)
        return meter.cost, writing.cost, sum(path.stat().st_size for path in written)
