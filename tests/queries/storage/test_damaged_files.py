"""A damaged file is reported as that, and only its user can read it; a backup puts it back."""

import contextlib
import errno
import os
import random
import shutil
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest
from tests.app.served import goodput, rows_of
from tests.queries.conftest import Evidence

from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch
from goodput_queries.storage import opening, private
from goodput_queries.storage.backup import back_up, backups_of, restore

HEADERS_BYTES = 12_288  # three blocks of 4 KiB before the data


def prices(number):
    row = {"source": "rates", "cluster": f"c{number}", "gpu_model": "H100", "price_per_gpu_h": 2.0}
    return Batch("rates", pl.DataFrame([row]), "rates", "rates.csv", str(number))


def use(path):
    """Open a file, read, write and build, as commands do."""
    with contextlib.closing(LocalStore(path)) as store:
        store.read("select * from raw.rates")
        store.load(prices(9))
        store.build()


@pytest.fixture(scope="module")
def healthy(empty_database, tmp_path_factory):
    path = tmp_path_factory.mktemp("healthy") / "fleet.duckdb"
    shutil.copyfile(empty_database, path)
    use(path)
    return path


@pytest.fixture
def path(healthy, tmp_path):
    return Path(shutil.copyfile(healthy, tmp_path / "fleet.duckdb"))


@pytest.mark.parametrize("bytes_left", [12, 4_096, 5_000, HEADERS_BYTES, 300_000])
def test_a_cut_file_is_called_damaged_and_not_a_full_disk(path, bytes_left):
    os.truncate(path, bytes_left)

    with pytest.raises(StoreError, match="the database file is damaged") as got:
        use(path)

    assert "disk is full" not in str(got.value)
    assert "Restore it from a copy" in str(got.value)
    assert str(path) in str(got.value)


def test_a_file_that_is_cut_while_it_is_open_is_called_damaged(path):
    with contextlib.closing(LocalStore(path)) as store:
        os.truncate(path, HEADERS_BYTES)
        with pytest.raises(StoreError, match="the database file is damaged"):
            store.read("from raw.rates, state.ingested, marts.runs, marts.ledger_pieces")


@pytest.mark.parametrize("seed", range(4))
def test_a_file_with_changed_bytes_is_called_damaged_or_works(path, seed):
    chance, content = random.Random(seed), bytearray(path.read_bytes())  # noqa: S311
    at = chance.randrange(12, len(content))
    for place in range(at, min(at + 300_000, len(content)), 1_000):
        content[place] = chance.randrange(256)
    path.write_bytes(content)

    with contextlib.suppress(StoreError):
        use(path)


@pytest.mark.parametrize("content", [b"abc", bytes(100), bytes(range(256)) * 20])
def test_a_write_ahead_log_that_cannot_be_read_is_kept_and_named(path, content, caplog):
    wal = Path(f"{path}.wal")
    wal.write_bytes(content)

    use(path)

    assert f"{wal}: nothing could be read from this write-ahead log" in caplog.text
    assert Path(f"{wal}.unreadable").read_bytes() == content


def test_a_write_ahead_log_that_is_read_is_not_named(path, tmp_path, caplog):
    with contextlib.closing(LocalStore(path)) as store:
        store.load(prices(1))
        copy = Path(shutil.copyfile(path, tmp_path / "copy.duckdb"))
        shutil.copyfile(f"{path}.wal", f"{copy}.wal")

    with contextlib.closing(LocalStore(copy)) as store:
        assert "c1" in store.read("select cluster from raw.rates")["cluster"].to_list()
    assert caplog.text == ""


def test_a_write_ahead_log_that_its_owner_removes_then_is_not_named(path, caplog, monkeypatch):
    wal = Path(f"{path}.wal")
    wal.write_bytes(bytes(100))
    opened = opening.connect

    def opened_once_it_is_free(*args, **options):
        wal.unlink(missing_ok=True)
        return opened(*args, **options)

    monkeypatch.setattr(opening, "connect", opened_once_it_is_free)
    use(path)

    assert caplog.text == ""
    assert not Path(f"{wal}.unreadable").exists()


def test_a_write_ahead_log_that_is_damaged_within_is_refused_with_the_way_on(path, tmp_path):
    with contextlib.closing(LocalStore(path)) as store:
        for number in range(20):
            store.load(prices(number))
        copy = Path(shutil.copyfile(path, tmp_path / "copy.duckdb"))
        log = bytearray(Path(f"{path}.wal").read_bytes())
    log[len(log) // 2 : len(log) // 2 + 40] = bytes(40)
    wal = Path(f"{copy}.wal")
    wal.write_bytes(log)

    with pytest.raises(StoreError, match="the write-ahead log is damaged") as got:
        use(copy)
    assert f"mv {wal} {wal}.damaged" in str(got.value)
    wal.rename(f"{wal}.damaged")
    use(copy)


def test_the_database_and_all_beside_it_are_readable_by_its_user_only(tmp_path):
    path = tmp_path / "fleet.duckdb"
    with contextlib.closing(LocalStore(path)) as store:
        store.load(prices(1))

        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    assert modes == {"fleet.duckdb": 0o600, "fleet.duckdb.wal": 0o600}


def test_what_is_written_for_others_has_the_rights_of_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(private, "_given", 0o022)
    before = os.umask(0o077)
    try:
        with private.for_others():
            (tmp_path / "report.csv").touch()
        (tmp_path / "own").touch()
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "report.csv").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "own").stat().st_mode) == 0o600


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
    """The database stays locked after it."""
    found = back_up(store, tmp_path / "copy.duckdb")

    copy = tmp_path / "copy.duckdb"
    assert found.select("file", "batches").rows() == [(str(copy), 1)]
    assert samples(copy) == [("nvml", 3)]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.glob("copy*")] == [copy]
    done = goodput(*("restore", "copy.duckdb", "--replace", "--db", "fleet.duckdb"), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("fleet.duckdb: another process has this database open; stop it")


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

    with contextlib.closing(store), ThreadPoolExecutor(1) as loader:
        loader.submit(load)
        try:
            assert is_begun.wait(60)
            back_up(store, copy)
        finally:
            is_over.set()
    restore(copy, tmp_path / "restored.duckdb", is_replacing=False)

    with contextlib.closing(LocalStore(tmp_path / "restored.duckdb")) as restored:
        ledger = restored.read(LEDGER).rows()
        assert ledger == ledgers[restored.read(BUILT).item()]
        assert ledger
        restored.build()  # evidence that was loaded and not built yet
        assert check(restored)["violations"].sum() == 0


def test_a_backup_into_a_folder_is_named_by_the_time_and_replaces_no_file(store, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    (other := folder / "fleet-of-others.duckdb").write_text("precious")
    found = back_up(store, folder)
    with pytest.raises(StoreError, match="this file exists; name another one"):
        back_up(store, other)

    assert [str(path) for path in backups_of(store.path, folder)] == found["file"].to_list()
    assert other.read_text() == "precious"


def test_a_restored_database_is_the_backup_and_the_other_is_kept(store, tmp_path, monkeypatch):
    copy, fleet = tmp_path / "copy.duckdb", tmp_path / "fleet.duckdb"
    back_up(store, copy)
    store.load(rows_of("dcgm", 2))
    store.close()
    with pytest.raises(StoreError, match="this database exists"):
        restore(copy, fleet, is_replacing=False)
    monkeypatch.setattr(os, "geteuid", lambda: fleet.stat().st_uid + 1)
    with pytest.raises(StoreError, match="Run this as the user of the server"):
        restore(copy, fleet, is_replacing=True)
    monkeypatch.undo()
    _, replaced = restore(copy, fleet, is_replacing=True)
    assert samples(fleet) == [("nvml", 3)]
    assert samples(replaced) == [("dcgm", 2), ("nvml", 3)]
    fleet.write_bytes(b"cut")  # one that is damaged, too
    restore(copy, fleet, is_replacing=True)
    assert samples(fleet) == [("nvml", 3)]
    copy.write_text("this is text, and long enough to have a head")
    with pytest.raises(StoreError, match="not a DuckDB database"):
        restore(copy, fleet, is_replacing=True)
    assert samples(fleet) == [("nvml", 3)]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_killed_restore_leaves_the_database_or_backup(store, tmp_path, monkeypatch, has_links):
    copy, fleet = tmp_path / "copy.duckdb", tmp_path / "fleet.duckdb"
    back_up(store, copy)
    store.load(rows_of("dcgm", 2))
    wal = Path(f"{fleet}.wal")
    files = {file: file.read_bytes() for file in (fleet, wal)}
    store.close()
    for file, content in files.items():  # as a process that was killed leaves them
        file.write_bytes(content)
    there = []

    def killed(_path, _target):
        there.append(samples(fleet))
        raise KeyboardInterrupt

    if not has_links:
        denied = OSError(errno.EPERM, "Operation not permitted")
        monkeypatch.setattr(os, "link", Mock(side_effect=denied))
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        restore(copy, fleet, is_replacing=True)

    assert there == [[("dcgm", 2), ("nvml", 3)]]
    (replaced,) = tmp_path.glob("fleet.duckdb.replaced-*")
    assert samples(replaced) == there[0]
