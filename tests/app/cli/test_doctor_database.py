"""`goodput doctor` on what a database holds: nothing, rejected rows only, no files of the site."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.app.command_line import run

from goodput_app.cli.doctor import doctor
from goodput_app.cli.doctor.site_files import site_findings
from goodput_app.settings import settings
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.storage.store import LocalStore, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doctor")


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[LocalStore]:
    """Give one database of all tests, in the order of the tests: each adds to it."""
    found = open_store(folder / "one.duckdb")
    assert isinstance(found, LocalStore)
    yield found
    found.close()


def loaded(store: LocalStore, source: str, file: Path, text: str) -> None:
    file.write_text(text)
    ingest(store, source, [file], ReadOptions())


def found(store: LocalStore) -> dict[str, tuple[str, str]]:
    """Return status and finding of each source."""
    return {what: (status, text) for what, status, text, _ in doctor._sources(store, "one.duckdb")}


def test_an_empty_database_is_a_problem_where_nothing_is_polled(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings.cache_clear()
    assert found(store)["sources"] == ("problem", "nothing was ingested")
    assert list(site_findings("one.duckdb", store)) == []

    (tmp_path / "goodput.toml").write_text('[[collect]]\nsource = "slurm"\n')
    settings.cache_clear()
    assert found(store)["sources"][0] == "missing"
    settings.cache_clear()


def test_a_source_of_which_every_row_was_rejected_is_a_problem(
    store: LocalStore, folder: Path
) -> None:
    loaded(store, "rates", folder / "a.csv", "price_per_gpu_h\ndear\n")
    assert found(store)["rejects rates"] == ("problem", "1 row rejected, none was left")

    loaded(store, "rates", folder / "b.csv", "price_per_gpu_h\n3\n")
    assert found(store)["rejects rates"] == ("rejected", "1 row rejected")


def test_facts_that_no_file_gave_are_named_with_the_lines_that_add_them(
    store: LocalStore, folder: Path
) -> None:
    missing = {what: line for what, _, _, line in site_findings("one.duckdb", store)}
    assert set(missing) == {"electricity prices", "node states"}

    loaded(store, "tariffs", folder / "tariffs.csv", "price_per_kwh\n0.20\n")
    assert [what for what, *_ in site_findings("one.duckdb", store)] == ["node states"]


def test_the_doctor_prints_them(folder: Path, store: LocalStore) -> None:
    store.close()
    result = run("doctor", "--db", str(folder / "one.duckdb"), "--format", "json")

    assert "node states" in {row["what"] for row in json.loads(result.stdout)}
