"""The benchmark runs whole at a tiny scale, and measures what it says. Nothing here is timed."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.benchmarks import table

ROOT = Path(__file__).parents[2]
TINY = (
    *("--gpus", "64", "--hours", "2", "--days", "2", "--history-gpus", "64"),
    *("--ingest", "0.002", "--smoke"),
)
PAGES = (
    *("overview", "fleet", "runs", "run", "waste", "cost", "data", "nodes", "health", "findings"),
    *("gpu", "explorer", "network", "energy", "serving", "compare", "query", "help", "report"),
)
WORKS = (
    *("yardstick, before", "yardstick, after"),
    *("ingest sacct text", "ingest Inspector logs, plain", "ingest Inspector logs, verbose"),
    *("ingest Prometheus text", "ingest range-query JSON", "ingest wide Parquet of the fleet"),
    *("generate the fleet", "storage of a reading, native", "storage of a reading, Parquet"),
    *("full ledger", "its telemetry stage", "growth of the full ledger"),
    "the next 5 minutes, loaded and built",
    *(f"page {name}" for name in PAGES),
    "findings of the time range after a commit",
    *("statement of 2 days", "report of the last day", "one further day"),
)


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
