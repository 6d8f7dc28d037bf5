from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from goodput_ingest import files
from goodput_ingest.goodput_events import GoodputEvents
from goodput_ingest.load import ingest
from goodput_ingest.source import ReadOptions

if TYPE_CHECKING:
    from goodput_queries.store import LocalStore

GOLDEN = Path(__file__).parent / "golden"
T0 = 1_787_234_400.0


def told(store: LocalStore, folder: Path, *said: dict[str, Any]) -> list[tuple[Any, ...]]:
    path = folder / "goodput.jsonl"
    path.write_text("".join(json.dumps({"job_name": "run7", **s}) + "\n" for s in said))
    ingest(store, "auto", [path], ReadOptions())
    return store.read(
        f"""select event, epoch(ts) - {T0} as at_s, step, phase, dur_s
        from raw.job_events order by ts, event"""
    ).rows()


def step(number: int, at_s: float) -> dict[str, Any]:
    return {"step_count": number, "step_start_time": T0 + at_s}


def test_a_step_ends_when_the_next_one_starts(store: LocalStore, tmp_path: Path) -> None:
    found = told(store, tmp_path, step(400, 0), step(401, 10.25))

    assert [row for row in found if row[0] == "step"] == [("step", 10.25, 400, None, 10.25)]


def test_the_last_step_has_no_end_and_is_not_claimed(store: LocalStore, tmp_path: Path) -> None:
    """Google's own calculator takes it as ending with the job."""
    found = told(store, tmp_path, step(400, 0), {"job_end_time": T0 + 500})

    assert [row[0] for row in found] == ["step.start", "job.end"]


@pytest.mark.parametrize("between", [{"job_start_time": T0 + 300}, None])
def test_a_step_is_not_stretched_over_a_restart(
    store: LocalStore, tmp_path: Path, between: dict[str, Any] | None
) -> None:
    said = [step(400, 0), *([between] if between else []), step(400, 500), step(401, 510)]

    found = told(store, tmp_path, *said)

    assert [(row[2], row[4]) for row in found if row[0] == "step"] == [(400, 10.0)]


def test_phases_come_in_the_ledgers_words(store: LocalStore, tmp_path: Path) -> None:
    found = told(
        store,
        tmp_path,
        {"job_start_time": T0},
        {"tpu_init_start_time": T0 + 1},
        {"tpu_init_end_time": T0 + 2},
        {"data_loading_start_time": T0 + 3},
        {"data_loading_end_time": T0 + 4},
        {"custom_badput_event_type": "eval_step", "custom_badput_event_start_time": T0 + 5},
        {"custom_badput_event_type": "sdc_check", "custom_badput_event_start_time": T0 + 6},
    )

    assert [(row[0], row[3]) for row in found] == [
        ("job.start", None),
        ("phase.start", "init"),
        ("phase.end", "init"),
        ("phase.start", "data_wait"),
        ("phase.end", "data_wait"),
        ("phase.start", "eval"),
        ("phase.start", "custom:sdc_check"),
    ]


@pytest.mark.parametrize(("synchronous", "durable"), [(True, [400]), (False, []), (None, [])])
def test_only_a_synchronous_save_is_known_to_be_durable(
    store: LocalStore, tmp_path: Path, synchronous: bool | None, durable: list[int]
) -> None:
    save = {
        "event_type": "save",
        "step": 400,
        "synchronous": synchronous,
        "wait_for_prev_duration_secs": 1.0,
        "checkpointer_blocking_duration_secs": 2.0,
        "checkpoint_manager_blocking_start_time": T0 + 20,
        "checkpoint_manager_blocking_duration_secs": 3.5,
    }

    found = told(store, tmp_path, {"job_start_time": T0}, save)

    assert [(row[1], row[4]) for row in found if row[3] == "ckpt_save"] == [(23.5, 3.5)]
    assert [row[2] for row in found if row[0] == "ckpt.durable"] == durable


def test_a_save_without_a_jobs_name_belongs_to_the_job_named_before_it(
    store: LocalStore, tmp_path: Path
) -> None:
    restore = {"checkpointer_start_time": T0 + 1, "checkpointer_duration_secs": 2.0}
    path = tmp_path / "goodput.jsonl"
    lines = [{"job_name": "run7", "job_start_time": T0}, {"event_type": "restore", **restore}]
    path.write_text("".join(json.dumps(s) + "\n" for s in lines))

    ingest(store, "auto", [path], ReadOptions())

    assert store.read("select distinct run_id from raw.job_events").rows() == [("run7",)]


@pytest.mark.parametrize(
    "said",
    [
        {"job_start_time": "yesterday"},
        {"step_start_time": T0},
        {"step_count": 1.5, "step_start_time": T0},
        {"event_type": "delete", "checkpointer_start_time": T0},
        {"event_type": "save", "step": 4},
        {"event_type": "save", "checkpoint_manager_blocking_start_time": T0,
         "checkpoint_manager_blocking_duration_secs": 1e12},
    ],
)  # fmt: skip
def test_a_broken_event_is_set_aside(
    store: LocalStore, tmp_path: Path, said: dict[str, Any]
) -> None:
    found = told(store, tmp_path, {"job_start_time": T0}, said)

    assert [row[0] for row in found] == ["job.start"]
    assert store.read("select line from raw.rejects").item() == 2


@pytest.mark.parametrize(
    "given",
    [p for p in sorted(GOLDEN.glob("*/*/input.*")) if p.parent.parent.name != "goodput_events"],
    ids=lambda p: p.parent.parent.name,
)
def test_files_of_other_sources_are_left_to_them(given: Path) -> None:
    assert not GoodputEvents.recognises(given, files.head(given))
