"""What two releases of Slurm printed, and the rows of the raw tables that come of it.

The inputs are files of shared/external/slurm as they are. GOODPUT_REWRITE_GOLDEN=1 rewrites the
expected files; review them as code.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_queries.catalog import models

if TYPE_CHECKING:
    from goodput_queries.storage.store import LocalStore

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm"
CASES = sorted(GOLDEN.iterdir())


def options_of(case: Path) -> ReadOptions:
    reported = json.loads((case / "options.json").read_text())
    at = reported.get("observed_at")
    return ReadOptions(
        cluster=reported.get("cluster"),
        zone=ZoneInfo(reported["zone"]) if "zone" in reported else None,
        observed_at=None if at is None else datetime.fromisoformat(at),
    )


def rows_of(store: LocalStore) -> dict[str, str]:
    """Return the rows of each raw table that has any as CSV, columns that are all null left out."""
    found = {}
    for table in models.of_layer("raw"):
        rows = store.read(f"select columns(*)::varchar from raw.{table} order by all")
        rows = rows.drop("origin", "load_sequence", strict=False)  # the store's own
        if not rows.is_empty():
            reported = rows.select(c for c in rows.columns if rows[c].is_not_null().any())
            found[f"expected_{table}.csv"] = reported.write_csv()
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_slurm_printed_gives_these_rows(case: Path, store: LocalStore) -> None:
    given = case / "input.txt"
    kind = recognise(given)
    assert kind is not None
    assert kind.name == "slurm"

    ingest(store, "auto", [given], options_of(case))

    found = rows_of(store)
    if os.environ.get("GOODPUT_REWRITE_GOLDEN"):
        for old in case.glob("expected_*.csv"):
            old.unlink()
        for file, text in found.items():
            (case / file).write_text(text)
    assert found == {file.name: file.read_text() for file in case.glob("expected_*.csv")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reading_it_again_changes_nothing(case: Path, store: LocalStore) -> None:
    given = case / "input.txt"
    ingest(store, "slurm", [given], options_of(case))
    before = rows_of(store)

    again = ingest(store, "slurm", [given], options_of(case))

    assert again.rows_new == 0
    assert again.repeats > 0
    assert rows_of(store) == before
