"""Recorded sources: real excerpts and exact formats in, the rows of the raw tables out.

GOODPUT_REWRITE_GOLDEN=1 rewrites the expected files; review them as code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise
from goodput_queries.catalog import models

if TYPE_CHECKING:
    from goodput_queries.storage.store import LocalStore

GOLDEN = Path(__file__).parents[1] / "golden"
OWN_TESTS = {"dcgm", "slurm"}  # by the files of one format each
FOLDERS = sorted(folder for folder in GOLDEN.iterdir() if folder.name not in OWN_TESTS)
CASES = [case for folder in FOLDERS for case in sorted(folder.iterdir())]


def raw_rows(store: LocalStore, table: str) -> pl.DataFrame:
    """Return a raw table's rows as texts, in one order, less what is the store's own."""
    rows = store.read(f"select columns(*)::varchar from raw.{table} order by all")
    return rows.drop("origin", "load_sequence", strict=False)


def as_csv(rows: pl.DataFrame) -> str:
    return rows.select(c for c in rows.columns if rows[c].is_not_null().any()).write_csv()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_a_recorded_file_gives_these_rows(case: Path, store: LocalStore) -> None:
    given = next(case.glob("input.*"))
    beside = case / "options.json"
    options = json.loads(beside.read_text()) if beside.exists() else {}
    zone = ZoneInfo(options["zone"]) if "zone" in options else None

    name = case.parent.name.replace("_", "-")
    read_options = ReadOptions(cluster=options.get("cluster"), zone=zone, node=options.get("node"))
    ingest(store, name, [given], read_options)

    kind = recognise(given)
    assert kind is not None
    assert kind.name == name
    tables = list(models.of_layer("raw"))
    found = {
        f"expected_{table}.csv": as_csv(rows)
        for table in tables
        if not (rows := raw_rows(store, table)).is_empty()
    }
    if os.environ.get("GOODPUT_REWRITE_GOLDEN"):
        for old in case.glob("expected_*.csv"):
            old.unlink()
        for file, text in found.items():
            (case / file).write_text(text)
    expected = {file.name: file.read_text() for file in case.glob("expected_*.csv")}
    assert found == expected
