"""torchtitan's structured log: one rank's JSON lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore

T0_US = 1_787_234_400_000_000


def line(name: str, at_ms: int, **fields: Any) -> str:
    said = {"global_rank": 8, "local_rank": 0, "host_name": "node002", "pid": 4211, "step": 401}
    return json.dumps({**said, "log_type_name": name, "time_us": T0_US + at_ms * 1000, **fields})


def write(folder: Path, *lines: str) -> Path:
    path = folder / "run7" / "structured_logs" / "training.global_rank_8.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in lines))
    return path


def test_a_step_carries_what_its_rank_waited_for_data(store: LocalStore, tmp_path: Path) -> None:
    fetches = [line("fetching_batch_end", at, value=250.0) for at in (300, 900)]
    steps = [line("step_end", at, value=1000.0, step=at // 1000) for at in (1000, 2000)]

    ingest(store, "auto", [write(tmp_path, *fetches, *steps)], ReadOptions())

    assert store.read(
        "select run_id, rank, host, step, dur_s, data_s from raw.job_events order by ts"
    ).rows() == [("run7", 8, "node002", 1, 1.0, 0.5), ("run7", 8, "node002", 2, 1.0, 0.0)]


def test_lines_that_srun_labelled_are_read(store: LocalStore, tmp_path: Path) -> None:
    ingest(
        store,
        "auto",
        [write(tmp_path, "3: " + line("structured_logger_started", 0))],
        ReadOptions(),
    )

    assert store.read("select event from raw.job_events").rows() == [("job.start",)]


def test_a_file_that_is_said_to_be_one_is_read_among_other_lines(
    store: LocalStore, tmp_path: Path
) -> None:
    """`auto` leaves it to others; who names the source knows what the file is."""
    path = write(tmp_path, "warning", "warning", line("structured_logger_started", 0), "warning")

    summary = ingest(store, "torchtitan-structured", [path], ReadOptions())

    assert (summary.rows, summary.rejects) == (1, 3)


def test_waiting_for_data_is_never_longer_than_its_step(store: LocalStore, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        line("fetching_batch_end", 300, value=9000.0),
        line("step_end", 1000, value=1000.0),
    )

    ingest(store, "auto", [path], ReadOptions())

    assert store.read("select data_s from raw.job_events").item() == 1.0


@pytest.mark.parametrize(
    ("name", "event", "phase"),
    [
        ("checkpoint_save_start", "phase.start", "ckpt_save"),
        ("checkpoint_save_end", "phase.end", "ckpt_save"),
        ("checkpoint_load_end", "phase.end", "restore"),
        ("model_parallelism_init_start", "phase.start", "init"),
        ("eval_end", "phase.end", "eval"),
        ("structured_logger_started", "job.start", None),
        ("torch_distributed_teardown_end", "job.end", None),
        ("optim_error", "failure", None),
    ],
)
def test_spans_come_in_the_ledgers_words_and_no_save_is_called_durable(
    store: LocalStore, tmp_path: Path, name: str, event: str, phase: str | None
) -> None:
    path = write(tmp_path, line(name, 0, value=5.0), line("fwd_bwd_end", 10, value=5.0))

    ingest(store, "auto", [path], ReadOptions())

    assert store.read("select event, phase, reports_durability from raw.job_events").rows() == [
        (event, phase, False)
    ]


def test_what_a_person_says_of_the_run_beats_the_folder(store: LocalStore, tmp_path: Path) -> None:
    path = write(tmp_path, line("step_end", 1000, value=1000.0))

    ingest(store, "auto", [path], ReadOptions(run_id="4711"))

    assert store.read("select run_id from raw.job_events").item() == "4711"


@pytest.mark.parametrize(
    "fields", [{"step": None}, {"value": None}, {"value": "fast"}, {"time_us": -1}, {"step": 1.5}]
)
def test_a_broken_step_is_rejected(
    store: LocalStore, tmp_path: Path, fields: dict[str, Any]
) -> None:
    good = line("step_end", 1000, value=1000.0)

    ingest(
        store,
        "auto",
        [write(tmp_path, good, line("step_end", 2000, **{"value": 1.0, **fields}))],
        ReadOptions(),
    )

    assert store.read("select count(*) from raw.job_events").item() == 1
    assert store.read("select line from raw.rejects").item() == 2
