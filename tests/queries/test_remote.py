"""A second process connects to the server through the note next to its database."""

import json
import os
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


def test_a_note_is_readable_by_its_owner_only(note):
    write_note(note)

    assert note_path(note.database).stat().st_mode & 0o777 == 0o600
    assert read_note(note.database) == note
    assert list(note_path(note.database).parent.iterdir()) == [note_path(note.database)]


def test_a_note_replaces_the_one_of_a_server_that_was_killed(note):
    write_note(replace(note, instance="before"))
    write_note(note)

    assert read_note(note.database) == note


def test_a_server_removes_its_own_note_only(note):
    write_note(note)

    remote.remove_note(replace(note, instance="another"))
    assert read_note(note.database) == note
    remote.remove_note(note)
    assert read_note(note.database) is None


def test_a_note_that_others_can_read_is_refused(note):
    write_note(note)
    path = note_path(note.database)
    path.chmod(0o640)

    with pytest.raises(StoreError) as caught:
        find_server(note.database)
    assert str(caught.value) == (
        f"{path}: the note of the running server is open to other users, so its token is not used. "
        f"Expected mode 0600: `chmod 600 {path}`."
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_note_of_another_user_is_refused(note):
    write_note(note)
    os.chown(note_path(note.database), 65534, 65534)

    with pytest.raises(StoreError, match="belongs to another user"):
        find_server(note.database)


def test_a_note_behind_a_link_is_refused(note, tmp_path):
    write_note(note)
    path = note_path(note.database)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError, match="cannot be read"):
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


def test_a_note_that_was_copied_with_the_database_is_none(note, tmp_path):
    copy = tmp_path / "copy.duckdb"
    write_note(note)
    note_path(note.database).rename(note_path(copy))

    assert read_note(copy) is None


def test_a_note_of_a_server_that_is_gone_is_ignored(note):
    write_note(note)

    assert find_server(note.database) is None


def test_memory_has_no_server():
    assert find_server(":memory:") is None


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
