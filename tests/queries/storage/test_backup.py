"""A backup is a consistent copy of a database in use; restoring puts it back."""

import contextlib
import threading

import pytest
from tests.app.served import goodput, rows_of
from tests.queries.conftest import Evidence

from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.errors import StoreError
from goodput_queries.storage.backup import back_up, backups_of, restore

SAMPLES = "select source, count(*) as n from raw.gpu_samples group by source order by source"


@pytest.fixture
def store(tmp_path, empty_database):
    path = tmp_path / "fleet.duckdb"
    path.write_bytes(empty_database.read_bytes())
    with contextlib.closing(LocalStore(path)) as opened:
        opened.load(rows_of("nvml", 3))
        yield opened


def samples(path):
    with contextlib.closing(LocalStore(path)) as opened:
        return opened.read(SAMPLES).rows()


def test_a_backup_has_what_was_committed_with_its_log_merged(store, tmp_path):
    found = back_up(store, tmp_path / "copy.duckdb")

    assert found["file"].to_list() == [str(tmp_path / "copy.duckdb")]
    assert found["batches"].to_list() == [1]
    assert samples(tmp_path / "copy.duckdb") == [("nvml", 3)]
    assert (tmp_path / "copy.duckdb").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.duckdb"]


LEDGER = """select cluster, node, gpu_uuid, category, hour_ms, gpu_ms
    from marts.ledger_hourly order by all"""
BUILT = "select max(sequence) from state.built"
BUILDS_MAX = 4  # a backup is made while one or two of them go on


def test_a_restored_backup_has_the_ledger_of_the_moment_and_passes_its_checks(new_store, tmp_path):
    """Evidence is loaded and built all the time meanwhile."""
    store, copy = new_store(), tmp_path / "copy.duckdb"
    made = Evidence(store)
    made.node("a", 2)
    ledgers = {}
    is_over, is_begun = threading.Event(), threading.Event()

    def load():
        for number in range(BUILDS_MAX):
            made.watched(600 * (number + 1))
            made.job(f"j{number}", 600 * number, 600 * number + 500, ["a"], 1 + number % 2)
            store.build()
            ledgers[store.read(BUILT).item()] = store.read(LEDGER).rows()
            is_begun.set()
            if is_over.is_set():
                return

    loader = threading.Thread(target=load)
    loader.start()
    try:
        assert is_begun.wait(60)
        back_up(store, copy)
    finally:
        is_over.set()
        loader.join()
        store.close()
    restore(copy, tmp_path / "restored.duckdb", is_replacing=False)

    with contextlib.closing(LocalStore(tmp_path / "restored.duckdb")) as restored:
        ledger = restored.read(LEDGER).rows()
        assert ledger == ledgers[restored.read(BUILT).item()]
        assert ledger
        restored.build()  # evidence that was loaded and not built yet
        assert check(restored)["violations"].sum() == 0


def test_the_database_stays_locked_after_its_backup(store, tmp_path):
    back_up(store, tmp_path / "copy.duckdb")

    done = goodput(*("restore", "copy.duckdb", "--replace", "--db", "fleet.duckdb"), cwd=tmp_path)

    assert (done.returncode, done.stderr) == (
        1,
        "fleet.duckdb: another process has this database open; stop it, then run this again.\n",
    )


def test_a_backup_into_a_folder_is_named_by_the_time_and_replaces_no_file(store, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    other = folder / "fleet-of-others.duckdb"
    other.write_text("precious")

    found = back_up(store, folder)
    with pytest.raises(StoreError, match="this file exists; name another one"):
        back_up(store, other)

    assert [str(path) for path in backups_of(store.path, folder)] == found["file"].to_list()
    assert other.read_text() == "precious"


def test_a_restored_database_is_the_backup_and_the_other_is_kept(store, tmp_path):
    back_up(store, tmp_path / "copy.duckdb")
    store.load(rows_of("dcgm", 2))
    store.close()

    with pytest.raises(StoreError, match="this database exists"):
        restore(tmp_path / "copy.duckdb", store.path, is_replacing=False)
    _, replaced = restore(tmp_path / "copy.duckdb", store.path, is_replacing=True)

    assert samples(tmp_path / "fleet.duckdb") == [("nvml", 3)]
    assert replaced is not None
    assert samples(replaced) == [("dcgm", 2), ("nvml", 3)]
    (tmp_path / "fleet.duckdb").write_bytes(b"cut")  # one that is damaged, too
    restore(tmp_path / "copy.duckdb", store.path, is_replacing=True)
    assert samples(tmp_path / "fleet.duckdb") == [("nvml", 3)]


def test_what_is_no_backup_replaces_nothing(store, tmp_path):
    store.close()
    (tmp_path / "copy.duckdb").write_text("this is text, and long enough to have a head")

    with pytest.raises(StoreError, match="not a DuckDB database"):
        restore(tmp_path / "copy.duckdb", store.path, is_replacing=True)
    assert samples(tmp_path / "fleet.duckdb") == [("nvml", 3)]
