"""The Python API: the examples of docs/python-api.md, and what its errors say."""

import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.app.served import serving

import goodput_queries
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.remote import read_note

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = BLOCK.findall(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def database(recorded_demo, tmp_path_factory):
    """Give the recorded session as `goodput.duckdb`."""
    path = tmp_path_factory.mktemp("api") / "goodput.duckdb"
    shutil.copyfile(recorded_demo, path)
    return path


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(example, database, monkeypatch):
    monkeypatch.chdir(database.parent)
    imports = "import goodput_queries\n"  # of the first example

    exec(imports + example, {})  # noqa: S102 -- our own documentation


def test_importing_the_package_imports_no_database():
    program = "import goodput_queries, sys; print({'duckdb', 'polars', 'httpx'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )

    assert done.stdout == "set()\n", done.stderr


@pytest.fixture
def served(database):
    """Give the ledger as the file alone has it, and then a server on that file."""
    with goodput_queries.open(database) as db:
        alone = db.ledger(by=["team", "category"])
    with serving(database) as server:
        yield alone, server


def test_the_same_answer_comes_from_the_file_its_server_and_its_url(database, served):
    alone, server = served
    with goodput_queries.open(database) as db:
        note = read_note(database)
        assert note is not None
        with goodput_queries.open(server.url, token=note.token) as by_url:
            assert by_url.ledger(by=["team", "category"]).equals(alone)
        assert db.ledger(by=["team", "category"]).equals(alone)
        with pytest.raises(StoreError, match="no server answers with this token"):
            goodput_queries.open(server.url, token="of the server before")


@pytest.mark.parametrize(
    "moment",
    ["2026-11-20T12:31Z", "2026-11-20T13:31+01:00", datetime(2026, 11, 20, 12, 31, tzinfo=UTC)],
)
def test_a_window_cuts_the_capacity(database, moment):
    with goodput_queries.open(database) as db:
        whole = db.ledger()["gpu_ms"].sum()
        parts = [db.ledger(to=moment)["gpu_ms"].sum(), db.ledger(from_=moment)["gpu_ms"].sum()]

        assert sum(parts) == whole
        assert min(parts) > 0
        assert db.ledger(from_=date(2026, 11, 21)).is_empty()


def test_what_cannot_be_answered_says_what_to_do(database):
    with goodput_queries.open(database) as db:
        naive = db.runs()["first_start_at"].to_list()[0]
        with pytest.raises(QueryError, match=r"has no time zone. Times in frames are UTC"):
            db.runs(from_=naive)
        with pytest.raises(QueryError, match="'yesterday' is not a valid time; expected like"):
            db.gaps(to="yesterday")
        with pytest.raises(QueryError, match="there is no filter 'account'; known: cluster, node"):
            db.ledger(account="nlp")
        with pytest.raises(QueryError, match="Did you mean 'capacity'"):
            db.view("capacities")
        with pytest.raises(QueryError, match="expected one select, and nothing else"):
            db.sql("drop table raw.gpus")
        assert db.sql("select $gpus as n", {"gpus": 4}).equals(
            pl.DataFrame({"n": [4]}), null_equal=True
        )


def test_a_database_that_is_not_there_is_not_created(tmp_path):
    missing = tmp_path / "fleet.duckdb"

    with pytest.raises(StoreError, match=r"there is no such database. Create it with `goodput"):
        goodput_queries.open(missing)
    assert not missing.exists()


def test_a_url_needs_a_token_and_its_own_machine(monkeypatch):
    monkeypatch.delenv("GOODPUT_TOKEN", raising=False)

    with pytest.raises(StoreError, match=r"`token` in DATABASE.server.json"):
        goodput_queries.open("http://127.0.0.1:9")
    with pytest.raises(StoreError, match=r"ssh -L 8501:127.0.0.1:8501 HOST"):
        goodput_queries.open("http://example.org:8501", token="any")
    with pytest.raises(StoreError, match=r"Is `goodput serve` running there"):
        goodput_queries.open("http://127.0.0.1:9", token="any")
