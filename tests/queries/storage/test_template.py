"""New databases as copies of a template in the user's cache folder."""

import contextlib

import pytest

from goodput_queries.database import LocalStore
from goodput_queries.storage import schema, template


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


def test_the_first_database_makes_the_template_and_later_ones_are_copies(cache, tmp_path, create):
    assert [copied(tmp_path / name, create) for name in ("a", "b", "c")] == ["empty 0"] * 3
    assert {file.suffix for file in cache.iterdir()} == {".duckdb"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c", "cache"}


def test_few_templates_of_other_versions_are_kept(cache, tmp_path, create, monkeypatch):
    for version in range(template.KEPT + 2):
        monkeypatch.setattr(schema, "catalog_digest", lambda digest=f"{version:016}": digest)
        copied(tmp_path / str(version), create)

    assert len(list(cache.iterdir())) == template.KEPT


HARM = {
    "damaged": lambda file: file.write_text("another"),
    "writable by others": lambda file: file.chmod(0o666),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_template_that_cannot_be_trusted_is_made_again(cache, tmp_path, create, harm):
    copied(tmp_path / "a", create)
    harm(next(cache.iterdir()))

    assert copied(tmp_path / "b", create) == "empty 1"
    assert copied(tmp_path / "c", create) == "empty 1"


def test_what_a_killed_process_left_is_replaced(cache, tmp_path, create):
    cache.mkdir(parents=True)
    (cache / "draft").write_text("half a database")

    assert copied(tmp_path / "a", create) == "empty 0"


@pytest.mark.parametrize("there", ["a", "a.wal"])
@pytest.mark.usefixtures("cache")
def test_what_is_there_stays(tmp_path, create, there):
    (tmp_path / there).write_text("of an earlier database")

    template.copy_to(tmp_path / "a", create)

    assert (tmp_path / there).read_text() == "of an earlier database"
    assert (tmp_path / "a").exists() == (there == "a")


@pytest.mark.usefixtures("cache")
def test_a_database_that_another_process_creates_meanwhile_stays(tmp_path):
    def create(path):
        path.write_text("empty")
        (tmp_path / "a").write_text("of another process")

    assert copied(tmp_path / "a", create) == "of another process"


@pytest.fixture
def created(tmp_path, monkeypatch):
    """Give a database that was created where no cache folder can be."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with contextlib.closing(LocalStore(tmp_path / "a")) as store:
        yield store


def test_without_a_cache_folder_a_database_is_created_from_the_sql_files(created):
    assert created.read("select count(*) from marts.clusters").item() == 0


def test_without_a_home_a_database_is_created_from_the_sql_files(tmp_path, monkeypatch, create):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(template.Path, "home", home)

    assert copied(tmp_path / "a", create) is None
