"""The Python API, and how a second process reaches the server through its note."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from tests.app.served import serving
from tests.tables import each

import goodput_queries
from goodput_queries import remote
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.remote import ServerNote, find_server, note_path, read_note, write_note
from goodput_queries.scope import Scope

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
    assert subprocess.check_output([sys.executable, "-c", program]) == b"set()\n"


def test_the_same_answer_comes_from_the_file_its_server_and_its_url(database):
    with goodput_queries.open(database) as db:
        alone = db.ledger(by=["team", "category"])
    with serving(database) as server, goodput_queries.open(database) as db:
        note = read_note(database)
        assert note is not None
        with goodput_queries.open(server.url, token=note.token) as by_url:
            assert by_url.ledger(by=["team", "category"]).equals(alone)
        assert db.ledger(by=["team", "category"]).equals(alone)
        with pytest.raises(StoreError, match="no server answers with this token"):
            goodput_queries.open(server.url, token="of the server before")


@each("2026-11-20T12:31Z", "2026-11-20T13:31+01:00", datetime(2026, 11, 20, 12, 31, tzinfo=UTC))
def test_a_window_cuts_the_capacity(database, moment):
    with goodput_queries.open(database) as db:
        whole = db.ledger()["gpu_ms"].sum()
        parts = [db.ledger(to=moment)["gpu_ms"].sum(), db.ledger(from_=moment)["gpu_ms"].sum()]

        assert sum(parts) == whole
        assert min(parts) > 0
        assert db.ledger(from_=date(2026, 11, 21)).is_empty()


@each(
    ("has no time zone. Times in frames are UTC",
     lambda db: db.runs(from_=db.runs()["first_start_at"].to_list()[0])),
    ("'yesterday' is not a valid time; expected like", lambda db: db.gaps(to="yesterday")),
    ("there is no filter 'account'; known: cluster, node", lambda db: db.ledger(account="nlp")),
    ("Did you mean 'capacity'", lambda db: db.view("capacities")),
    ("expected one select, and nothing else", lambda db: db.sql("drop table raw.gpus")),
)  # fmt: skip
def test_what_cannot_be_answered_says_what_to_do(database, message, ask):
    with goodput_queries.open(database) as db:
        with pytest.raises(QueryError, match=re.escape(message)):
            ask(db)
        assert db.sql("select $gpus as n", {"gpus": 4}).item() == 4


NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.mark.parametrize(("name", "token", "message"), [
    ("fleet.duckdb", None, r"there is no such database. Create it with `goodput"),
    (NOBODY_LISTENS, None, r"`token` in DATABASE.server.json"),
    ("http://example.org:8501", "any", r"ssh -L 8501:127.0.0.1:8501 HOST"),
    (NOBODY_LISTENS, "any", r"Is `goodput serve` running there"),
])  # fmt: skip
def test_what_cannot_be_opened_says_what_to_do(tmp_path, monkeypatch, name, token, message):
    monkeypatch.delenv("GOODPUT_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=message):
        goodput_queries.open(name, token=token)
    assert not [*tmp_path.iterdir()], "a database that is not there is not created"


@pytest.fixture
def note(tmp_path):
    database = str((tmp_path / "fleet.duckdb").resolve())
    return ServerNote(NOBODY_LISTENS, "secret", os.getpid(), "instance", database)


def test_a_note_is_readable_by_its_owner_only_replaces_the_one_before_and_goes_with_it(note):
    write_note(replace(note, instance="of a server that was killed"))
    write_note(note)

    assert note_path(note.database).stat().st_mode & 0o777 == 0o600
    assert read_note(note.database) == note
    assert list(note_path(note.database).parent.iterdir()) == [note_path(note.database)]
    remote.remove_note(replace(note, instance="another"))
    assert read_note(note.database) == note
    assert find_server(note.database) is find_server(":memory:") is None, "it is gone"
    remote.remove_note(note)
    assert read_note(note.database) is None
    write_note(note)
    copy = Path(note.database).with_name("copy.duckdb")
    note_path(note.database).rename(note_path(copy))
    assert read_note(copy) is None


OPEN = ("{0}: the note of the running server is open to other users, so its token is not used. "
        "Expected mode 0600: `chmod 600 {0}`.")  # fmt: skip
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.mark.parametrize(("harm", "message"), [
    pytest.param(lambda path: path.chmod(0o640), OPEN, id="others can read it"),
    pytest.param(lambda path: os.chown(path, 65534, 65534), "belongs to another user",
                 marks=needs_root, id="of another user"),
    pytest.param(lambda path: path.symlink_to(path.rename(path.with_name("elsewhere"))),
                 "cannot be read", id="behind a link"),
])  # fmt: skip
def test_a_note_that_cannot_be_trusted_is_refused(note, harm, message):
    write_note(note)
    path = note_path(note.database)
    harm(path)

    with pytest.raises(StoreError, match=re.escape(message.format(path))):
        find_server(note.database)


@each(
    "", "[]", "{", '{"url": "http://127.0.0.1:9"}',
    '{"url": 1, "token": 2, "pid": 3, "instance": 4, "database": 5}',
    '{"url": "http://example.org:8501", "token": "t", "pid": 3, "instance": "i", "database": "d"}',
)  # fmt: skip
def test_a_note_that_cannot_be_understood_or_points_to_another_machine_is_none(note, text):
    write_note(note)
    note_path(note.database).write_text(text.replace('"d"', json.dumps(note.database)))
    assert read_note(note.database) is None


def test_a_batch_travels_whole():
    at = [datetime(2026, 11, 20, 12, 0, 0, 123456), None]  # noqa: DTZ001 -- naive UTC
    values = {"ratio": [0.1, float("nan")], "count": [2**62, None], "kinds": [["a", "ü"], None]}
    rows = pl.DataFrame({"at": at, **values})
    rejects = (Reject(1, "bad", "x\ny"), Reject(None, "cut"))
    sent = Batch("gpus", rows, "test", "a 'file'", "1", rejects)
    head = asdict(sent)
    head["rejects"] = [[r.line, r.reason, r.content] for r in sent.rejects]
    del head["rows"]

    arrived, is_polled = remote.batch_of(remote.pack(head | {"is_polled": True}, rows))

    assert arrived.rows.equals(rows)
    assert arrived.rows.schema == rows.schema
    assert replace(arrived, rows=sent.rows) == sent
    assert is_polled


@each(
    None,
    [1, "two", None, 3.5, True],
    [datetime(2026, 11, 20, tzinfo=UTC), date(2026, 11, 20), Decimal("1.25"), b"\x00"],
    [["a", "b"], []],
    {"team": "vision", "since": datetime(2026, 11, 20)},  # noqa: DTZ001 -- naive UTC
)
def test_parameters_keep_their_types(parameters):
    head = {"sql": "select 1", "scope": asdict(Scope(team="a")), "timeout_s": 1.5}

    arrived = remote.query_of(remote.pack(head, remote._as_frame(parameters)))

    assert arrived == ("select 1", parameters, Scope(team="a"), 1.5)


@each(b"", b"\xff" * 20, (5).to_bytes(8, "big") + b"[",
      *((2).to_bytes(8, "big") + text for text in (b"[]", b"{}nonsense")))  # fmt: skip
def test_bytes_that_are_no_call_are_refused(body):
    with pytest.raises((ValueError, json.JSONDecodeError)):
        remote.unpack(body)
