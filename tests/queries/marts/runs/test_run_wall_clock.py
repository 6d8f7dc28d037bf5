"""Goodput by wall clock, as the Cluster Readiness Engine defines it, on logs with expected parts.

A case is a folder: the logs of a run's workers and `case.json` with its job runs and what is
expected, worked out by hand from the definition.
"""

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.queries.conftest import built_together

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.source import JobLog

CASES = sorted(Path(__file__).with_name("wall_clock_cases").iterdir())
PARTS = ("wall", "lost", "rescheduling", "resuming", "saving")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@built_together
def test_a_log_gives_the_parts_and_the_ratio(cluster, case):
    given = json.loads((case / "case.json").read_text())
    cluster.node("a", 1)
    for run, start, end, state in given["jobs"]:
        cluster.job(run, start, end, ["a"], 1, state=state)
    options = ReadOptions(cluster=cluster.name, run_id="7", zone=ZoneInfo("UTC"))
    for log in sorted(case.glob("*.log")):
        for batch in JobLog(log, options).extract():
            cluster.store.load(batch)
    yield
    (run,) = cluster.read("select * from marts.run_wall_clock").rows(named=True)
    found = {f"{part}_s": run[f"{part}_ms"] / 1000 for part in PARTS}
    assert {**found, "goodput": round(run["nvcre_goodput_ratio"], 6)} == given["expected"]


# wall, lost, rescheduling, resuming, saving: the ratio
RATIOS = {
    "all parts": (7200, 600, 120, 80, 40, 6360 / 7080),
    "nothing but work": (3600, 0, 0, 0, 0, 1),
    "saves alone": (3600, 0, 0, 0, 90, 0.975),
    "more lost than there was": (3600, 4000, 0, 0, 0, 0),
    "nothing but rescheduling": (300, 0, 300, 0, 0, 0),
}


@pytest.mark.parametrize("row", RATIOS.values(), ids=RATIOS)
@built_together
def test_the_ratio_of_its_parts(cluster, row):
    *parts, expected = row
    yield
    found = cluster.read("select nvcre_goodput_ratio({}, {}, {}, {}, {})".format(*parts)).item()
    assert found == pytest.approx(expected)
