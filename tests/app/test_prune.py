"""`goodput prune` and the server drop what goodput.toml calls too old."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from click.testing import CliRunner

from goodput_app import cli, server
from goodput_app import settings as app_settings
from goodput_queries.batch import Batch
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

START = datetime(2026, 11, 16)  # noqa: DTZ001 -- the database holds naive UTC


def readings(day: int) -> Batch:
    """Return a day of readings of one GPU, one every ten minutes."""
    frame = pl.DataFrame(
        {
            "source": "dcgm",
            "gpu_uuid": "GPU-1",
            "gpu_instance": "",
            "ts": [START + timedelta(days=day, minutes=10 * i) for i in range(144)],
            "gpu_busy_ratio": 1.0,
        }
    )
    return Batch("gpu_samples", frame, "dcgm", "test", f"day {day}")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a database of five days whose settings keep two."""
    path = tmp_path / "site.duckdb"
    store = LocalStore(path)
    inventory = pl.DataFrame(
        {"source": ["inventory"], "cluster": ["c"], "gpu_uuid": ["GPU-1"], "node": ["a"]}
    )
    store.load(Batch("gpus", inventory, "inventory", "test", "gpus"))
    for day in range(5):
        store.load(readings(day))
    store.close()
    file = tmp_path / "goodput.toml"
    file.write_text("[retention]\nsamples_days = 2\n")
    monkeypatch.setenv("GOODPUT_CONFIG", str(file))
    app_settings.settings.cache_clear()
    yield str(path)
    app_settings.settings.cache_clear()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


def days_left(store: LocalStore) -> int:
    return int(store.read("select count(distinct ts::date) from raw.gpu_samples").item())


def test_prune_says_what_it_dropped(db: str) -> None:
    found = run("prune", "--db", db, "--format", "csv")

    assert found.exit_code == 0, found.output
    assert "raw.gpu_samples,432," in found.output
    store = LocalStore(db)
    assert days_left(store) == 2
    assert store.read("select sum(gpu_ms) from marts.ledger_hourly").item() > 4 * 86_400_000
    store.close()


def test_the_server_drops_after_a_build(db: str) -> None:
    store = LocalStore(db)

    server._bring_up_to_date(store)

    assert days_left(store) == 2
    store.close()
