"""Change the rules one place at a time and see whether a test notices.

    python -m tests.mutations --sample 20 --seed 1        # or: --only int_prices

Each mutation is one change of an operator, an order or a pair of cases, in a copy of the project;
the tests named for its file run on it. A mutation that no test notices is printed, and the exit
code is 1. Takes about half a minute a mutation.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutations.operators import mutations_of

ROOT = Path(__file__).parents[2]
COPIED = ("app", "ingest", "queries", "sample_data", "tests")
QUERIES = "queries/goodput_queries"
TARGETS = {  # file -> the tests that specify it, the quickest first
    f"{QUERIES}/sql/build_temp/ledger/intervals_classified.sql": (
        "tests/queries/rules/test_precedence.py",
        "tests/queries/rules/gpus/test_rules_of_gpus.py",
        "tests/queries/rules/test_worked_examples.py",
        "tests/queries/rules/jobs/test_rules_of_jobs.py",
        "tests/queries/serving/test_serving_ledger.py",
        "tests/oracle/test_oracle.py",
        "tests/queries/rules/jobs/test_ownership_without_a_scheduler.py",
        "tests/queries/marts/speed/test_throttled_peers.py",
    ),
    f"{QUERIES}/sql/macros/ratios.sql": (
        "tests/queries/rules/test_worked_examples.py",
        "tests/queries/marts/ledger/test_definition.py",
        "tests/queries/marts/telemetry/test_host_metrics.py",
    ),
    f"{QUERIES}/sql/intermediate/prices/int_prices.sql": (
        "tests/queries/billing/test_prices.py",
        "tests/queries/marts/ledger/test_definition.py",
        "tests/queries/billing/test_statement_closing.py",
    ),
    f"{QUERIES}/sql/marts/findings/loss_parts.sql": (
        "tests/queries/findings/test_losses.py",
        "tests/queries/findings/test_cases.py",
        "tests/findings/test_quality.py",
    ),
    f"{QUERIES}/sql/marts/findings/loss_findings.sql": (
        "tests/queries/findings/test_losses.py",
        "tests/queries/findings/test_cases.py",
        "tests/findings/test_quality.py",
    ),
    "app/goodput_billing/statement/closing.py": (
        "tests/app/billing/test_covered_days.py",
        "tests/queries/billing/test_statement_closing.py",
    ),
    f"{QUERIES}/ledger_build/differences.py": (
        "tests/queries/ledger_build/test_dirty.py",
        "tests/queries/ledger_build/test_incremental_runs.py",
    ),
    f"{QUERIES}/ledger_build/dirty.py": (
        "tests/queries/ledger_build/test_dirty.py",
        "tests/queries/ledger_build/test_incremental_runs.py",
    ),
    f"{QUERIES}/ledger_build/dirty_runs.py": (
        "tests/queries/ledger_build/test_dirty.py",
        "tests/queries/ledger_build/test_incremental_runs.py",
    ),
    f"{QUERIES}/ledger_build/placement/dirty_nodes.py": (
        "tests/queries/ledger_build/test_dirty_nodes.py",
        "tests/queries/ledger_build/test_incremental_runs.py",
        "tests/queries/ledger_build/test_placed_again.py",
    ),
    f"{QUERIES}/ledger_build/placement/incremental.py": (
        "tests/queries/ledger_build/test_incremental_runs.py",
        "tests/queries/ledger_build/test_placed_again.py",
    ),
}


def main():
    """Try mutations; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.mutations")
    parser.add_argument("--sample", type=int, help="how many to try, drawn at random; default all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of the name of the files to change")
    given = parser.parse_args()
    found = [
        (name, mutation)
        for name in TARGETS
        if given.only in name
        for mutation in mutations_of((ROOT / name).read_text(), name.endswith(".sql"))
    ]
    random.Random(given.seed).shuffle(found)  # noqa: S311 -- an order, no secret
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", copy)
        for name, mutation in found[: given.sample]:
            if not _is_noticed(copy, name, mutation):
                alive += 1
                sys.stdout.write(f"alive: {name}:{mutation.line}: {mutation.change}\n")
                sys.stdout.flush()
    tried = len(found[: given.sample])
    sys.stdout.write(f"{tried} of {len(found)} mutations tried, {alive} alive\n")
    return int(alive > 0)


def _is_noticed(copy, name, mutation):
    """Say whether a test fails on the changed copy; the copy is as before afterwards."""
    path = copy / name
    before = path.read_text()
    path.write_text(mutation.text)
    paths = os.pathsep.join(str(copy / part) for part in ("app", "ingest", "queries"))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *TARGETS[name]], cwd=copy, env={**os.environ, "PYTHONPATH": paths},
            capture_output=True, check=False,
        )  # fmt: skip
    finally:
        path.write_text(before)
    return run.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
