"""`goodput retire`: a source that was removed from goodput.toml is reported no more."""

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.app.command_line import run

from goodput_app.settings import settings
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_queries import audit
from goodput_queries.database import LocalStore

NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
REPORTED = "select source, origin, state from marts.live_sources order by all"


@pytest.fixture
def database(tmp_path, monkeypatch, empty_database):
    """Give a database that two sources were collected into, with nothing configured now."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "goodput.duckdb"
    path.write_bytes(empty_database.read_bytes())
    with contextlib.closing(LocalStore(path)) as store:
        hour = timedelta(hours=1)
        for name in ("dcgm", "slurm"):
            live_status.write(store, [Status(name, f"{name} a", NOW - hour, 30)])
    return path


def reported(database):
    with contextlib.closing(LocalStore(database)) as store:
        return store.read(REPORTED).rows()


def test_a_retired_source_is_reported_no_more(database):
    done = run("retire", "dcgm", "--format", "json")

    assert done.exit_code == 0
    assert [row["origin"] for row in json.loads(done.stdout)] == ["dcgm a"]
    assert reported(database) == [("slurm", "slurm a", "stale")]
    with contextlib.closing(LocalStore(database)) as store:
        (entry,) = audit.entries(store).rows(named=True)
    assert (entry["action"], entry["subject"]) == ("retire a source", "dcgm (dcgm a)")


def test_a_retired_source_that_is_asked_again_is_reported_again(database):
    run("retire", "dcgm")
    with contextlib.closing(LocalStore(database)) as store:
        status = live_status.read(store, Status("dcgm", "dcgm a", NOW, 30))
        live_status.write(store, [status.answered(NOW)])

    assert [row[0] for row in reported(database)] == ["dcgm", "slurm"]


def test_a_source_that_is_still_configured_is_not_retired(database):
    (database.parent / "goodput.toml").write_text(
        '[[collect]]\nsource = "slurm"\ncluster = "lab"\n'
    )
    settings.cache_clear()
    with contextlib.closing(LocalStore(database)) as store:
        live_status.write(store, [Status("slurm", "slurm:lab", NOW, 30)])

    refused = run("retire", "slurm", "slurm:lab")
    other = run("retire", "slurm")

    assert refused.exit_code == 1
    assert "remove its [[collect]] table first" in refused.stderr
    assert other.exit_code == 0
    assert [row[:2] for row in reported(database)] == [("dcgm", "dcgm a"), ("slurm", "slurm:lab")]


def test_a_source_that_is_not_known_is_an_error_that_lists_those_that_are(database):
    refused = run("retire", "nvml", "--db", str(database))

    assert refused.exit_code == 1
    assert "no live source nvml is reported. Reported: dcgm (dcgm a), slurm (slurm a)." in (
        refused.stderr
    )
