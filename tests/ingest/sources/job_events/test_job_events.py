# ruff: noqa: DTZ001 -- moments are stored naive, in UTC
from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from goodput_ingest.formats.files import LINE_MAX_BYTES
from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_ingest.run.ingest import Summary
    from goodput_queries.storage.store import LocalStore

STEP: dict[str, Any] = {"v": 1, "ts": 1787234549.25, "event": "step", "step": 401, "dur_s": 10.02}


def write(folder: Path, *events: dict[str, Any] | str) -> Path:
    path = folder / "job_events.jsonl"
    path.write_text("".join((e if isinstance(e, str) else json.dumps(e)) + "\n" for e in events))
    return path


def read(store: LocalStore, path: Path, cluster: str | None = None) -> Summary:
    return ingest(store, "job-events", [path], ReadOptions(cluster=cluster))


def reasons(store: LocalStore) -> list[str]:
    return [r for (r,) in store.read("select reason from raw.rejects order by line").rows()]


def test_an_event_is_kept_with_what_its_schema_names(store: LocalStore, tmp_path: Path) -> None:
    event = {
        **STEP,
        "run_id": "run7",
        "attempt": 2,
        "rank": 3,
        "local_rank": 1,
        "host": "node001",
        "pid": 77,
        "gpu_uuid": "GPU-a",
        "data_s": 0.1,
        "comm_s": 0.2,
        "straggler_s": 0.3,
        "throttle_s": 0.4,
        "tokens": 16384,
        "flops": 4e13,
        "samples": 16,
        "gpu_tokens": 4096,
        "gpu_flops": 1e13,
        "mfu_ratio": 0.4,
        "loss": 2.5,
        "msg": "fine",
    }

    read(store, write(tmp_path, event), cluster="alpha")

    (row,) = store.read("select * exclude (load_sequence) from raw.job_events").rows(named=True)
    assert row == {
        **{k: v for k, v in event.items() if k != "v"},
        "source": "job-events",
        "cluster": "alpha",
        "ts": datetime(2026, 8, 20, 14, 2, 29, 250_000),
        "phase": None,
        "kind": None,
        "reports_durability": True,
        "extra": None,
    }


@pytest.mark.parametrize(
    "ts",
    [
        1787234549.25,
        "2026-08-20T14:02:29.25Z",
        "2026-08-20T16:02:29.250000+02:00",
        "2026-08-20 09:02:29.25-05:00",
    ],
)
def test_a_time_with_its_zone_becomes_utc(
    store: LocalStore, tmp_path: Path, ts: float | str
) -> None:
    read(store, write(tmp_path, {**STEP, "ts": ts}))

    assert store.read("select ts from raw.job_events").item() == datetime(
        2026, 8, 20, 14, 2, 29, 250_000
    )


@pytest.mark.parametrize(
    "ts",
    [
        "2026-08-20T14:02:29",
        "2026-08-20",
        "1787234549.25",
        "20 Aug 2026 14:02:29 +0000",
        "2026-02-30T14:02:29Z",
        "2026-08-20T14:02:29+25:00",
        1787234549250,
        -1,
        float("nan"),
        float("inf"),
        10**400,
        True,
        None,
        [1787234549],
    ],
)
def test_any_other_time_is_refused(store: LocalStore, tmp_path: Path, ts: object) -> None:
    read(store, write(tmp_path, {**STEP, "ts": ts}))

    assert store.read("select count(*) from raw.job_events").item() == 0
    assert [reason.split()[0] for reason in reasons(store)] == ["ts"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"v": 2}, "v is 2, expected 1"),
        ({"v": "1"}, "v is '1', expected 1"),
        ({"v": True}, "v is True, expected 1"),
        ({"event": "step.begun"}, "unknown event 'step.begun'"),
        ({"event": None}, "event is missing"),
        ({"event": 4}, "event is a number, expected text"),
        ({"step": None}, "step is missing, an event 'step' needs it"),
        ({"step": -1}, "step is out of range"),
        ({"step": "401"}, "step is text, expected a whole number"),
        ({"step": 1.5}, "step is not a whole number"),
        ({"step": 2**63}, "step is out of range"),
        ({"rank": [0]}, "rank is a list, expected a whole number"),
        ({"rank": True}, "rank is a truth value, expected a whole number"),
        ({"attempt": 2**31}, "attempt is out of range"),
        ({"dur_s": "10"}, "dur_s is text, expected a number"),
        ({"dur_s": -0.5}, "dur_s is out of range"),
        ({"dur_s": float("inf")}, "dur_s is out of range"),
        ({"host": 7}, "host is a number, expected text"),
        ({"msg": {}}, "msg is an object, expected text"),
        ({"event": "phase.start"}, "phase is missing, an event 'phase.start' needs it"),
        (
            {"event": "phase", "phase": "init", "dur_s": None},
            "dur_s is missing, an event 'phase' needs it",
        ),
        (
            {"event": "ckpt.durable", "step": None},
            "step is missing, an event 'ckpt.durable' needs it",
        ),
    ],
)
def test_a_bad_field_rejects_the_row_and_is_named(
    store: LocalStore, tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    summary = read(store, write(tmp_path, {**STEP, **fields}, STEP))

    assert summary.rows_new == 1
    assert reasons(store) == [reason]


def test_an_event_without_a_version_is_refused(store: LocalStore, tmp_path: Path) -> None:
    read(store, write(tmp_path, STEP, {k: v for k, v in STEP.items() if k != "v"}))

    assert reasons(store) == ["v is missing"]


def test_a_number_that_is_nan_is_unknown(store: LocalStore, tmp_path: Path) -> None:
    read(store, write(tmp_path, {**STEP, "tokens": float("nan")}))

    assert store.read("select tokens from raw.job_events").item() is None


def test_a_job_that_did_not_say_its_run_has_an_empty_run(store: LocalStore, tmp_path: Path) -> None:
    read(store, write(tmp_path, STEP))

    assert store.read("select run_id, attempt, rank from raw.job_events").row(0) == ("", None, None)


def test_unknown_fields_are_kept(store: LocalStore, tmp_path: Path) -> None:
    event = {**STEP, "grad_norm": float("nan"), "lr": 0.1, "deep": {"a": [1, float("-inf")]}}

    read(store, write(tmp_path, event))

    extra = json.loads(store.read("select extra from raw.job_events").item())
    assert extra == {"grad_norm": None, "lr": 0.1, "deep": {"a": [1, None]}}


@pytest.mark.parametrize("count", [1, 1000])
def test_an_unknown_field_that_is_half_a_character_is_kept_as_far_as_it_goes(
    store: LocalStore, tmp_path: Path, count: int
) -> None:
    fields = {f"{i}\ud800": "\ud800 and 100 %\x00" for i in range(count)}

    summary = read(store, write(tmp_path, {**STEP, **fields}))

    assert (summary.rows_new, summary.rejects) == (1, 0)


def test_too_many_unknown_fields_are_cut_and_named(store: LocalStore, tmp_path: Path) -> None:
    read(store, write(tmp_path, {**STEP, **{f"label{i}": "x" * 100 for i in range(1000)}}))

    extra = json.loads(store.read("select extra from raw.job_events").item())
    assert extra["cut"] is True
    assert len(extra["names"]) == 50


def test_a_line_without_end_is_rejected_as_too_long(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({**STEP, "note": "x" * LINE_MAX_BYTES}) + "\n" + json.dumps(STEP))

    assert read(store, path).rows == 1
    assert reasons(store) == ["the line is longer than 16 MiB"]


def test_long_texts_are_capped(store: LocalStore, tmp_path: Path) -> None:
    read(store, write(tmp_path, {**STEP, "msg": "x" * 10**6, "run_id": "r" * 10**4}))

    found = store.read("select length(msg), length(run_id) from raw.job_events").row(0)
    assert found == (2000, 200)


def test_a_broken_last_line_is_rejected(store: LocalStore, tmp_path: Path) -> None:
    path = write(tmp_path, STEP)
    with path.open("a") as file:
        file.write('{"v": 1, "ts": 17872345')

    summary = read(store, path)

    assert (summary.rows_new, summary.rejects) == (1, 1)
    assert reasons(store)[0].startswith("the line is cut or not JSON")


def test_a_file_that_is_one_cut_line_is_no_error(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "job_events.jsonl"
    path.write_text('{"v": 1, "t')

    assert read(store, path).rejects == 1


def test_lines_labelled_by_srun_are_read(store: LocalStore, tmp_path: Path) -> None:
    path = write(tmp_path, "3: " + json.dumps(STEP), "12: " + json.dumps({**STEP, "step": 9}))

    assert ingest(store, "auto", [path], ReadOptions()).rows_by_table == {"job_events": 2}


def test_reading_twice_changes_nothing_and_a_grown_file_adds_what_is_new(
    store: LocalStore, tmp_path: Path
) -> None:
    path = write(tmp_path, STEP)
    read(store, path)
    again = read(store, path)
    with path.open("a") as file:
        file.write(json.dumps({**STEP, "step": 402, "ts": STEP["ts"] + 10}) + "\n")
    grown = read(store, path)

    assert (again.rows_new, grown.rows_new) == (0, 1)
    assert store.read("select step from raw.job_events order by 1").rows() == [(401,), (402,)]


def test_a_document_that_shows_events_is_not_a_file_of_events(
    store: LocalStore, tmp_path: Path
) -> None:
    path = write(tmp_path, "# Events", "One line is one event:", "", "as this:", STEP, "and so on.")

    assert ingest(store, "auto", [path], ReadOptions()).unrecognised == [str(path)]
