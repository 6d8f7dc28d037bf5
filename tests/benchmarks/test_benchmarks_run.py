"""The benchmark runs whole at a tiny scale, and measures what it says. Nothing here is timed."""

import contextlib
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.benchmarks import formats, table, telemetry_stage
from tests.benchmarks.format_sacct import SACCT
from tests.benchmarks.meter import Cost
from tests.benchmarks.table import Other, Row
from tests.evidence_over_time import evidence_of, load, reported_between, reported_until, rows_of

from goodput_app.demo import recipe
from goodput_ingest.run.ingest import ingest
from goodput_ingest.synthetic import generate

ROOT = Path(__file__).parents[2]
TINY = (
    *("--gpus", "64", "--hours", "2", "--days", "2", "--history-gpus", "64"),
    *("--ingest", "0.002", "--smoke"),
)
WORKS = (
    "ingest sacct text",
    "ingest Inspector logs, plain",
    "ingest Inspector logs, verbose",
    "yardstick, before",
    "yardstick, after",
    "ingest Prometheus text",
    "ingest range-query JSON",
    "generate the fleet",
    "ingest wide Parquet of the fleet",
    "storage of a reading, native",
    "storage of a reading, Parquet",
    "full ledger",
    "its telemetry stage",
    "growth of the full ledger",
    "the next 5 minutes, ledger",
    "the next 5 minutes, loaded and built",
    "page overview",
    "page fleet",
    "page runs",
    "page run",
    "page waste",
    "page cost",
    "page data",
    "page nodes",
    "page health",
    "page findings",
    "page gpu",
    "page explorer",
    "page network",
    "page energy",
    "page serving",
    "page compare",
    "page query",
    "findings of the time range after a commit, beside the pages",
    "page overview, first after opening the file",
    "statement of 2 days",
    "report of the last day",
    "one further day",
)
START = datetime(2026, 11, 16, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.slow
def test_every_work_has_a_row_and_tiny_scales_are_not_held_against_budgets():
    run = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *TINY],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert run.returncode == 0, run.stderr
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in run.stdout.splitlines()
        if line.startswith("| ")
    ]
    assert rows[0] == list(table.COLUMNS)
    works = [row[0] for row in rows[1:]]
    assert [w for w in WORKS if not any(work.startswith(w) for work in works)] == []
    assert [work for work in works if not work.startswith(WORKS)] == []
    assert {row[2] for row in rows[1:]} == {"-"}


def test_a_telemetry_stage_that_differs_by_a_millisecond_is_refused(tmp_path):
    mine, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    rows = pl.DataFrame({"gpu_uuid": ["a", "b"], "active_ms": [1_000, 2_000]})
    rows.write_parquet(mine)

    rows.write_parquet(theirs)
    assert not telemetry_stage.difference(mine, theirs)

    rows.with_columns(active_ms=pl.Series([1_000, 2_001])).write_parquet(theirs)
    assert "of 2 rows 1 are only in ours.parquet" in telemetry_stage.difference(mine, theirs)


@pytest.fixture
def evidence(new_store, tmp_path):
    """Give all rows of a fleet of 64 GPUs and two hours, by table."""
    generate(tmp_path, gpus=64, hours=2, seed=5, start=START.replace(tzinfo=UTC), telemetry="none")
    with contextlib.closing(new_store()) as source:
        for step in recipe(tmp_path):
            ingest(source, step.source, [step.path], step.options)
        return evidence_of(source)


def test_sources_that_are_asked_again_report_what_is_new_and_no_more(new_store, evidence):
    again, once = new_store(), new_store()
    first, last = START + timedelta(minutes=47), START + timedelta(minutes=71)

    came = reported_between(evidence, first, last)
    for store, moment, rows in (
        (again, first, reported_until(evidence, first)),
        (again, last, came),
        (once, last, reported_until(evidence, last)),
    ):
        for name, of_table in rows.items():
            load(store, name, of_table, moment)

    # when an ended job was looked at last is all that may differ
    for name in evidence:
        found, expected = (
            rows_of(store, name).drop("observed_at", strict=False).sort(pl.all())
            for store in (again, once)
        )
        assert found.rows() == expected.rows(), name
    assert came["job_events"]["ts"].min() > first
    assert came["job_runs"].height < evidence["job_runs"].height
    assert "gpus" not in came
    for store in (again, once):
        store.close()


def test_the_ratio_is_that_of_the_fastest_alternative_that_ran():
    row = Row(
        "a | b",
        "5 rows/s",
        Cost(2.0, 4.0),
        others=[
            Other("slow", Cost(9.0, 9.0)),
            Other("fast", Cost(3.0, 2.0)),
            Other("absent", None, "not installed"),
        ],
    )

    cells = str(row).strip("| ").split(" | ")
    assert cells[0] == "a / b"
    assert cells[6] == "slow 9.00 s (CPU 9.00); fast 3.00 s (CPU 2.00); absent: not installed"
    assert cells[7] == "1.50 (CPU 0.50)"


def test_of_several_ingests_the_best_counts_and_the_others_are_reported():
    costs = [Cost(4.0, 5.0), Cost(2.5, 5.0), Cost(10.0, 6.0)]

    row = formats.row(SACCT.format, 1_000_000, costs, [])

    assert row.ours == "400 k rows/s (median 250 k rows/s, worst 100 k rows/s)"
    assert (row.cost, row.is_met) == (costs[1], True)


def test_a_run_is_written_between_the_marks_and_replaces_the_one_before(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.BEGIN}\n{table.END}\nafter\n")

    table.write(readme, "first")
    table.write(readme, "second")

    assert readme.read_text() == f"before\n{table.BEGIN}\nsecond\n{table.END}\nafter\n"
