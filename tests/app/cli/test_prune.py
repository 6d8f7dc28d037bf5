"""What goes: rows that goodput.toml calls too old, and sources that were removed from it."""

import contextlib
import json
import shutil
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from tests.app.command_line import failing, rows, run

from goodput_app.cli.doctor.live_sources import live_findings
from goodput_app.server.background import Upkeep
from goodput_ingest.live import status as live_status
from goodput_ingest.live.status import Status
from goodput_queries import audit
from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch

START = datetime(2026, 11, 16)  # noqa: DTZ001 -- the database holds naive UTC


def readings(day):
    """Return a day of readings of one GPU, one every ten minutes."""
    frame = pl.DataFrame({
        "source": "dcgm", "gpu_uuid": "GPU-1", "gpu_instance": "",
        "ts": [START + timedelta(days=day, minutes=10 * i) for i in range(144)],
        "gpu_busy_ratio": 1.0,
    })  # fmt: skip
    return Batch("gpu_samples", frame, "dcgm", "test", f"day {day}")


def fill(store):
    """Load five days, and build."""
    gpu = {"source": ["inventory"], "cluster": ["c"], "gpu_uuid": ["GPU-1"], "node": ["a"]}
    store.load(Batch("gpus", pl.DataFrame(gpu), "inventory", "test", "gpus"))
    for day in range(5):
        store.load(readings(day))
    store.build()


@pytest.fixture
def db(filled, tmp_path, configured):
    """Give a database of five days, whose settings keep two."""
    configured("[retention]\nsamples_days = 2\n")
    return str(shutil.copyfile(filled("five-days", fill), tmp_path / "site.duckdb"))


def asked(path, sql):
    """Return what a database answers that nobody has open."""
    with contextlib.closing(LocalStore(path)) as store:
        return store.read(sql)


def days_left(db):
    return asked(db, "select count(distinct ts::date) from raw.gpu_samples").item()


def test_prune_builds_and_says_what_it_dropped(db):
    with contextlib.closing(LocalStore(db)) as store:
        store.load(readings(5))

    found = run("prune", "--yes", "--db", db, "--format", "csv")

    assert found.exit_code == 0, found.output
    assert "raw.gpu_samples,576," in found.output
    assert days_left(db) == 2
    ledger_ms = asked(db, "select sum(gpu_ms) from marts.ledger_hourly").item()
    assert ledger_ms > 5 * 86_400_000, "it is built before its readings are dropped"


def test_prune_asks_before_it_drops_more_than_a_tenth_or_keeps_all(db, configured):
    found = run("prune", "--db", db)

    assert found.exit_code == 1
    assert "432 of 720 rows of raw.gpu_samples (60%)" in found.output
    assert "`goodput prune --yes`" in found.output
    configured("")
    said = "[retention] in goodput.toml is not set: everything is retained."
    assert said in run("prune", "--yes", "--db", db).stderr
    assert days_left(db) == 5


def test_the_server_drops_what_has_come_of_age(db):
    run("prune", "--yes", "--db", db)
    with contextlib.closing(LocalStore(db)) as store:
        store.load(readings(5))
        Upkeep(store).run()

    assert days_left(db) == 2


def test_the_server_says_among_its_sources_that_it_drops_no_more_than_a_tenth(db):
    with contextlib.closing(LocalStore(db)) as store:
        store.load(readings(5))
        Upkeep(store).run()

        source = store.read("from marts.live_sources").row(0, named=True)
        assert (source["source"], source["state"]) == ("retention", "failing")
        assert "`goodput prune --yes`" in source["error"]
        ((_, _, found, _),) = [
            row for row in live_findings(db, store, nearby=()) if row[0] == "collected retention"
        ]
        assert "goodput.toml is failing, last success never: " in found
        assert "`goodput prune --yes`" in found
    assert days_left(db) == 6


GPU = {"index": 0, "uuid": "GPU-a", "name": "NVIDIA H200", "pci_bus_id": "00000000:9B:00.0"}
META = {"kind": "meta", "t": 1795177770.5, "host": "vm", "driver": "580.159.04", "gpus": [GPU]}
FAST = {"kind": "fast", "t": 1795177771.0, "gpu": 0, "util_gpu_pct": 97, "power_mw": 690_500}


@pytest.mark.usefixtures("db")
def test_dropped_files_that_are_read_again_bring_their_hours_back(empty_database, tmp_path):
    """Recordings of three days, of ten hours each."""
    other = str(shutil.copyfile(empty_database, tmp_path / "other.duckdb"))
    day, start = 86_400, START.replace(tzinfo=UTC).timestamp()
    for n in range(3):
        lines = [META, *({**FAST, "t": start + n * day + 300 * i} for i in range(120))]
        (tmp_path / f"{n}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    files = [str(tmp_path / f"{n}.jsonl") for n in range(3)]

    def ledger():
        with contextlib.closing(LocalStore(other)) as store:
            store.build()
            return store.read("select * from intermediate.int_ledger_segments order by all").rows()

    read = run("ingest", "nvml", *files, "--db", other)
    before = ledger()
    pruned = run("prune", "--yes", "--db", other)

    assert (read.exit_code, pruned.exit_code) == (0, 0), read.output + pruned.output
    assert days_left(other) == 2

    again = run("ingest", "nvml", *files, "--db", other)
    reopened = run("ingest", "nvml", *files, "--reopen", "--db", other)

    assert "1 file had readings that [retention] dropped" in again.output
    assert reopened.exit_code == 0, reopened.output
    assert ledger() == before
    assert days_left(other) == 3


NOW = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
REPORTED = "select source, origin, state from marts.live_sources order by all"


@pytest.fixture
def database(here, filled):
    """Give a database that two sources were collected into, with nothing configured now."""
    before = NOW - timedelta(hours=1)
    sources = [Status(name, f"{name} a", before, 30) for name in ("dcgm", "slurm")]
    collected = filled("collected", lambda store: live_status.write(store, sources))
    return shutil.copyfile(collected, here / "goodput.duckdb")


def test_a_retired_source_is_reported_no_more_until_it_is_asked_again(database):
    assert [row["origin"] for row in rows("retire", "dcgm")] == ["dcgm a"]
    assert asked(database, REPORTED).rows() == [("slurm", "slurm a", "stale")]
    with contextlib.closing(LocalStore(database)) as store:
        (entry,) = audit.entries(store).rows(named=True)
        status = live_status.read(store, Status("dcgm", "dcgm a", NOW, 30))
        live_status.write(store, [status.answered(NOW)])
    assert (entry["action"], entry["subject"]) == ("retire a source", "dcgm (dcgm a)")
    assert asked(database, REPORTED)["source"].to_list() == ["dcgm", "slurm"]


def test_a_source_that_is_still_configured_is_not_retired(database, configured):
    configured('[[collect]]\nsource = "slurm"\ncluster = "lab"\n')
    with contextlib.closing(LocalStore(database)) as store:
        live_status.write(store, [Status("slurm", "slurm:lab", NOW, 30)])

    assert "remove its [[collect]] table first" in failing("retire", "slurm", "slurm:lab")
    assert run("retire", "slurm").exit_code == 0
    left = asked(database, REPORTED).rows()
    assert [row[:2] for row in left] == [("dcgm", "dcgm a"), ("slurm", "slurm:lab")]


def test_a_source_that_is_not_known_is_an_error_that_lists_those_that_are(database):
    said = failing("retire", "nvml", "--db", str(database))
    assert "no live source nvml is reported. Reported: dcgm (dcgm a), slurm (slurm a)." in said
