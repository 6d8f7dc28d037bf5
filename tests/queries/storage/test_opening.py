"""Opening a database: whose file it is, what is refused, and what a reader of it may do."""

import contextlib
import os
import shutil
import stat
import tempfile
from unittest.mock import Mock

import duckdb
import polars as pl
import pytest
from tests.tables import each

from goodput_queries.database import LocalStore, open_store
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch
from goodput_queries.storage import opening, schema, template
from goodput_queries.storage.file_lock import hold_lock_file, is_held, temporary_folder


def gpus(uuid="GPU-1"):
    rows = pl.DataFrame([{"source": "test", "gpu_uuid": uuid, "node": "n1"}])
    return Batch("gpus", rows, "test", "file", uuid)


def test_what_is_no_database_is_refused_at_once(tmp_path):
    path = tmp_path / "fleet.duckdb"
    path.write_text("not a database, whatever lock it names\n" * 500)
    with pytest.raises(StoreError, match="this is not a DuckDB database; name another file"):
        open_store(path)


@pytest.mark.parametrize("is_for_reading_only", [False, True])
def test_a_database_of_another_program_stays_as_is(tmp_path, monkeypatch, *, is_for_reading_only):
    """Schemas `staging` and `marts` are what others call theirs, too."""
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK or not is_for_reading_only)
    path = tmp_path / "theirs.duckdb"
    with contextlib.closing(duckdb.connect(str(path))) as theirs:
        theirs.execute("create schema staging")
        theirs.execute("create table staging.payroll as select 1 as employee")
    before = path.read_bytes()

    with pytest.raises(StoreError, match=r"not Goodput's: it has staging\.payroll\. Nothing was"):
        LocalStore(path)

    assert path.read_bytes() == before


def test_another_client_reads_a_large_view_in_one_plan(empty_database, tmp_path):
    """Each of its parts is named once in it; a plan that names them again does not end."""
    path = shutil.copyfile(empty_database, tmp_path / "copied.duckdb")
    with contextlib.closing(duckdb.connect(str(path), read_only=True)) as other:
        other.execute("set disabled_optimizers = 'projection_pullup'")
        assert other.execute("select count(*) from marts.loss_findings").fetchall() == [(0,)]


LIMIT = "select parse_formatted_bytes(current_setting('memory_limit')) >> 20"


@each(({"threads": 1}, 2048), ({"threads": 3}, 3072), ({"threads": 3, "memory_mib": 700}, 700),
      ({"threads": 1024}, None))  # fmt: skip
def test_memory_is_bounded_by_threads_or_as_set_and_spills_beside_the_file(tmp_path, given, mib):
    """DuckDB takes 80 % of the machine at most, however many threads it has."""
    path = tmp_path / "fleet.duckdb"
    with contextlib.closing(LocalStore(path, **given)) as store:
        found = store.read(LIMIT).item()
        assert found < 1024 << 10 if mib is None else found == mib
        assert store.read("select current_setting('temp_directory')").item() == f"{path}.tmp"


def test_there_is_a_thread_for_each_core_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {7}, raising=False)
    with contextlib.closing(LocalStore(":memory:")) as store:
        assert store.read("select current_setting('threads')").item() == 1


@pytest.mark.parametrize("folder", ["nowhere", "file"])
def test_a_database_that_cannot_be_made_is_a_store_error(tmp_path, folder):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"fleet.duckdb: "):
        LocalStore(tmp_path / folder / "fleet.duckdb")


def give_away(store, monkeypatch):
    """Close a database and let no file be written, as for a user who is not its owner."""
    store.close()
    monkeypatch.setattr(os, "access", lambda _path, mode: mode != os.W_OK)


def test_a_built_database_of_another_user_is_read_and_others_say_who_can(store, monkeypatch):
    store.build()
    store.load(gpus())
    with monkeypatch.context() as patch:
        give_away(store, patch)
        said = r"read-only for you; .* its owner to run `goodput build`"
        with pytest.raises(StoreError, match=said):
            open_store(store.path)
    store = LocalStore(store.path)
    store.build()
    give_away(store, monkeypatch)

    with contextlib.closing(open_store(store.path)) as opened:
        assert opened.build().is_empty()
        assert opened.read("select gpu_uuid from raw.gpus").item() == "GPU-1"
        with pytest.raises(StoreError, match=r"is read-only for you; copy it"):
            opened.load(gpus("GPU-2"))


def test_closing_goes_on_where_a_query_ended_meanwhile():
    root, ended = Mock(), duckdb.connect()
    root.close.side_effect = [duckdb.Error("the connection is busy"), None]
    ended.close()

    opening.close(root, [ended])

    assert root.close.call_count == 2


def test_a_process_opens_a_file_once_and_a_closed_one_says_so(tmp_path):
    path = tmp_path / "site's.duckdb"
    store = LocalStore(path)
    with pytest.raises(StoreError, match="this process has this database open already"):
        LocalStore(path)
    store.close()
    with pytest.raises(StoreError, match=r"site's\.duckdb: the database is closed\."):
        store.read("select 1")


def refusal(pid):
    return f"process {pid} works here"


def test_a_second_holder_is_refused_with_the_process_id_of_the_first(tmp_path):
    """What a killed process left is taken over."""
    path = tmp_path / "lock"
    path.write_text("4194304999")
    assert not is_held(path)

    with hold_lock_file(path, refusal):
        assert is_held(path)
        assert path.read_text() == str(os.getpid())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with (
            pytest.raises(StoreError, match=f"^process {os.getpid()} works here$"),
            hold_lock_file(path, refusal),
        ):
            pass
        assert is_held(path)

    assert not is_held(path)
    assert not path.exists()


@each(("link", "cannot be written"), ("none/lock", r"written \(No such file"))
def test_a_link_is_not_followed_and_a_missing_folder_is_named(tmp_path, name, reason):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(StoreError, match=reason), hold_lock_file(tmp_path / name, refusal):
        pass
    assert (tmp_path / "target").read_text() == "precious"
    assert not is_held(tmp_path / "none" / "lock")


def test_a_temporary_folder_takes_only_what_a_killed_process_left_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "goodput-x-left" / "recording").mkdir(parents=True)
    kept = tmp_path / "goodput-y-kept"
    kept.mkdir()
    (tmp_path / "goodput-x-link").symlink_to(kept)

    with temporary_folder("goodput-x-") as first, temporary_folder("goodput-x-") as second:
        found = {str(path) for path in tmp_path.iterdir()}
        assert found == {first, second, str(kept), str(tmp_path / "goodput-x-link")}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "goodput" / "template"


@pytest.fixture
def create():
    """Write a number, which goes up with each file that is not a copy."""
    made = iter(range(100))
    return lambda path: path.write_text(f"empty {next(made)}")


def copied(path, create):
    template.copy_to(path, create)
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("draft", [None, "half a database"], ids=["", "a killed process left it"])
def test_the_first_database_makes_the_template_and_others_copy_it(cache, tmp_path, create, draft):
    if draft:
        cache.mkdir(parents=True)
        (cache / "draft").write_text(draft)
    assert [copied(tmp_path / name, create) for name in ("a", "b", "c")] == ["empty 0"] * 3
    assert [file.suffix for file in cache.iterdir() if file.name != "draft"] == [".duckdb"]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c", "cache"}


def test_few_templates_of_other_versions_are_kept(cache, tmp_path, create, monkeypatch):
    for version in range(template.KEPT + 2):
        monkeypatch.setattr(schema, "catalog_digest", lambda digest=f"{version:016}": digest)
        copied(tmp_path / str(version), create)
    assert len(list(cache.iterdir())) == template.KEPT


@pytest.mark.parametrize("harm",
                         [lambda file: file.write_text("another"), lambda file: file.chmod(0o666)],
                         ids=["damaged", "writable by others"])  # fmt: skip
def test_a_template_that_cannot_be_trusted_is_made_again(cache, tmp_path, create, harm):
    copied(tmp_path / "a", create)
    harm(next(cache.iterdir()))
    assert copied(tmp_path / "b", create) == "empty 1"
    assert copied(tmp_path / "c", create) == "empty 1"


@pytest.mark.parametrize("there", ["a", "a.wal"])
@pytest.mark.usefixtures("cache")
def test_what_is_there_or_comes_meanwhile_stays(tmp_path, create, there):
    earlier = "of an earlier database"
    (tmp_path / there).write_text(earlier)

    assert copied(tmp_path / "a", create) == (earlier if there == "a" else None)
    assert (tmp_path / there).read_text() == earlier

    def slow(path):
        create(path)
        (tmp_path / "b").write_text("of another process")

    assert copied(tmp_path / "b", slow) == "of another process"


@pytest.mark.machine  # it takes 3 CPU s
def test_without_a_cache_folder_a_database_is_created_from_the_sql_files(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with contextlib.closing(LocalStore(tmp_path / "a")) as created:
        assert created.read("select count(*) from marts.clusters").item() == 0


def test_without_a_home_a_database_is_created_from_the_sql_files(tmp_path, monkeypatch, create):
    unknown = Mock(side_effect=RuntimeError("Could not determine home directory."))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(template.Path, "home", unknown)
    assert copied(tmp_path / "a", create) is None
