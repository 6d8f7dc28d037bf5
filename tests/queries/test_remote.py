"""A second process connects to the server through the note next to its database."""

import json
import os
import re
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from goodput_queries import remote
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.remote import ServerNote, find_server, note_path, read_note, write_note
from goodput_queries.scope import Scope

NOBODY_LISTENS = "http://127.0.0.1:9"


@pytest.fixture
def note(tmp_path):
    database = str((tmp_path / "fleet.duckdb").resolve())
    return ServerNote(NOBODY_LISTENS, "secret", os.getpid(), "instance", database)


def test_a_note_is_readable_by_its_owner_only_and_replaces_the_one_before(note):
    write_note(replace(note, instance="of a server that was killed"))
    write_note(note)

    assert note_path(note.database).stat().st_mode & 0o777 == 0o600
    assert read_note(note.database) == note
    assert list(note_path(note.database).parent.iterdir()) == [note_path(note.database)]


def test_a_server_removes_its_own_note_only(note):
    write_note(note)

    remote.remove_note(replace(note, instance="another"))
    assert read_note(note.database) == note
    remote.remove_note(note)
    assert read_note(note.database) is None


OPEN = ("{0}: the note of the running server is open to other users, so its token is not used. "
        "Expected mode 0600: `chmod 600 {0}`.")  # fmt: skip
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
HARMED = [
    pytest.param(lambda path: path.chmod(0o640), OPEN, id="others can read it"),
    pytest.param(
        lambda path: os.chown(path, 65534, 65534), "belongs to another user", marks=needs_root,
        id="of another user",
    ),
    pytest.param(
        lambda path: path.symlink_to(path.rename(path.with_name("elsewhere"))), "cannot be read",
        id="behind a link",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("harm", "message"), HARMED)
def test_a_note_that_cannot_be_trusted_is_refused(note, harm, message):
    write_note(note)
    path = note_path(note.database)
    harm(path)

    with pytest.raises(StoreError, match=re.escape(message.format(path))):
        find_server(note.database)


TEXTS = (
    *("", "[]", "{", '{"url": "http://127.0.0.1:9"}'),
    '{"url": 1, "token": 2, "pid": 3, "instance": 4, "database": 5}',
    '{"url": "http://example.org:8501", "token": "t", "pid": 3, "instance": "i", "database": "d"}',
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_note_that_cannot_be_understood_or_points_to_another_machine_is_none(note, text):
    write_note(note)
    note_path(note.database).write_text(text.replace('"d"', json.dumps(note.database)))

    assert read_note(note.database) is None


def test_a_note_of_a_server_that_is_gone_or_of_a_copied_database_is_ignored(note, tmp_path):
    copy = tmp_path / "copy.duckdb"
    write_note(note)

    assert find_server(note.database) is find_server(":memory:") is None
    note_path(note.database).rename(note_path(copy))
    assert read_note(copy) is None


def test_a_batch_travels_whole():
    rows = pl.DataFrame(
        {
            "at": [datetime(2026, 11, 20, 12, 0, 0, 123456), None],  # noqa: DTZ001
            "ratio": [0.1, float("nan")],
            "count": [2**62, None],
            "kinds": [["a", "ü"], None],
        }
    )
    sent = Batch(
        "gpus", rows, "test", "a 'file'", "1", (Reject(1, "bad", "x\ny"), Reject(None, "cut"))
    )
    head = asdict(sent)
    head["rejects"] = [[r.line, r.reason, r.content] for r in sent.rejects]
    del head["rows"]

    arrived = remote.batch_of(remote.pack(head, rows))

    assert arrived.rows.equals(rows)
    assert arrived.rows.schema == rows.schema
    assert replace(arrived, rows=sent.rows) == sent


@pytest.mark.parametrize(
    "parameters",
    [
        None,
        [1, "two", None, 3.5, True],
        [datetime(2026, 11, 20, tzinfo=UTC), date(2026, 11, 20), Decimal("1.25"), b"\x00"],
        [["a", "b"], []],
        {"team": "vision", "since": datetime(2026, 11, 20)},  # noqa: DTZ001
    ],
)
def test_parameters_keep_their_types(parameters):
    head = {"sql": "select 1", "scope": asdict(Scope(team="a")), "timeout_s": 1.5}

    arrived = remote.query_of(remote.pack(head, remote._as_frame(parameters)))

    assert arrived == ("select 1", parameters, Scope(team="a"), 1.5)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff" * 20,
        (5).to_bytes(8, "big") + b"[",
        (2).to_bytes(8, "big") + b"[]",
        (2).to_bytes(8, "big") + b"{}nonsense",
    ],
)
def test_bytes_that_are_no_call_are_refused(body):
    with pytest.raises((ValueError, json.JSONDecodeError)):
        remote.unpack(body)
