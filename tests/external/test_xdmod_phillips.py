"""A real Slurm log against what Open XDMoD makes of it: totals, and every cell of every day.

XDMoD's rules: records without nodes are left out, GPUs are those of the allocation, a job is split
at midnight (UTC) over the days it ran in, and its wait belongs to the day on which it started.
"""

import csv
from datetime import date
from zoneinfo import ZoneInfo

import pytest
from tests.external_data import EXTERNAL, reading

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

pytestmark = reading(EXTERNAL)
PHILLIPS = EXTERNAL / "xdmod-sacct-phillips"
DAYS = """
with jobs as (select *, len(nodes) as node_count from raw.job_runs where len(nodes) > 0),

days as (
    select jobs.*, unnest(
        generate_series(date_trunc('day', start_at), end_at, interval 1 day)) as day_start
    from jobs
),

job_days as (
    select *, day_start::date as day, greatest(0, date_diff('second',
        greatest(start_at, day_start), least(end_at, day_start + interval 1 day))) / 3600 as hours
    from days
)

select day, count(*) as running_job_count,
    count(*) filter (where start_at::date = day) as started_job_count,
    count(*) filter (where end_at::date = day) as job_count,
    sum(hours) as total_wallduration_hours, sum(hours * gpus) as total_gpu_hours,
    sum(hours * cpus) as total_cpu_hours, sum(hours * node_count) as total_node_hours,
    coalesce(sum(date_diff('second', submit_at, start_at))
        filter (where start_at::date = day), 0) / 3600 as total_waitduration_hours
from job_days
group by day
"""
MEASURES = (
    *("job_count", "running_job_count", "started_job_count", "total_cpu_hours"),
    *("total_gpu_hours", "total_node_hours", "total_waitduration_hours"),
    "total_wallduration_hours",
)


@pytest.fixture(scope="module")
def phillips(module_store):
    store = module_store()
    ingest(store, "auto", [PHILLIPS / "phillips.log.gz"], ReadOptions(zone=ZoneInfo("UTC")))
    return store


@pytest.fixture(scope="module")
def days(phillips):
    """Return what each day has of each measure."""
    return {row["day"]: row for row in phillips.read(DAYS).to_dicts()}


def expected(file):
    """Return the cells of a report: those between its header line and its last rule."""
    with (PHILLIPS / "expected" / file).open() as lines:
        rows = list(csv.reader(lines))
    rules = [n for n, row in enumerate(rows) if row == ["---------"]]
    return rows[rules[0] + 2 : rules[1]]


@pytest.mark.parametrize("measure", MEASURES)
def test_every_day_is_as_xdmod_reports_it(days, measure):
    reported = {
        date.fromisoformat(day): float(value)
        for day, value in expected(f"{measure}.timeseries-Day.csv")
    }

    assert len(reported) == 11
    found = {day: days[day][measure] if day in days else 0 for day in reported}
    assert {day: round(float(value), 4) for day, value in found.items()} == reported


def test_records_without_nodes_are_kept_as_demand(phillips):
    found = phillips.read(
        "select count(*), count(*) filter (where len(nodes) = 0) from raw.job_runs"
    )

    assert found.rows() == [(4_285, 239)]
