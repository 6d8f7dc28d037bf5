"""What lines of torchtitan become."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.ingest.job_log_lines import brief, parsed

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore

TITAN = "[titan] 2026-08-20 14:{clock} - root - INFO - "


def test_torchtitan_steps_share_the_time_between_two_lines(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        TITAN.format(clock="03:00,000") + "Training starts at step 401\n"
        + TITAN.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214  mfu: N/A\n"
        + TITAN.format(clock="03:20,000") + "step: 405  loss:  6.41230  tps: 8,214  mfu: 40.66%\n"
    )  # fmt: skip

    assert brief(parsed(store, tmp_path, text), "step", "dur_s") == [
        (401, 12.0),
        (402, 2.0),
        (403, 2.0),
        (404, 2.0),
        (405, 2.0),
    ]


def test_colours_are_seen_through(store: LocalStore, tmp_path: Path) -> None:
    text = (
        "[titan] 2026-08-20 14:03:12,000 - root - INFO - \x1b[31mstep: 401  \x1b[32mloss:  6.41230"
        "  \x1b[38;2;180;60;0mtps: 8,214\x1b[39m\n"
    )

    assert brief(parsed(store, tmp_path, text), "step") == [(401,)]


def test_of_ranks_that_write_the_same_lines_one_is_heard(store: LocalStore, tmp_path: Path) -> None:
    line = TITAN.format(clock="03:12,{ms}") + "step: {step}  loss:  6.41  tps: 8,214\n"
    text = "".join(
        f"[rank{rank}]:" + line.format(ms=100 + rank, step=step)
        for step in (401, 402)
        for rank in (2, 0, 1)
    )

    assert brief(parsed(store, tmp_path, text), "at", "step") == [
        ("14:03:12.102", 401),
        ("14:03:12.102", 402),
    ]


@pytest.mark.parametrize(("word", "durable"), [("sav", [401]), ("stag", [])])
def test_a_synchronous_save_of_torchtitan_is_durable_when_it_ends_and_a_staged_one_never_says_so(
    store: LocalStore, tmp_path: Path, word: str, durable: list[int]
) -> None:
    text = (
        TITAN.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214\n"
        + TITAN.format(clock="03:13,000") + f"{word.title()}ing the checkpoint.\n"
        + TITAN.format(clock="03:15,310")
        + f"Finished {word}ing the checkpoint in 2.31 seconds.\n"
    )  # fmt: skip

    events = parsed(store, tmp_path, text)

    assert [e["step"] for e in events if e["event"] == "ckpt.durable"] == durable
    assert [(e["event"], e["at"]) for e in events if e["phase"] == "ckpt_save"] == [
        ("phase.start", "14:03:13.000"),
        ("phase.end", "14:03:15.310"),
    ]
    assert not any(e["reports_durability"] for e in events)


def test_versions_that_nccl_prints_go_with_the_next_event(
    whole_store: LocalStore, tmp_path: Path
) -> None:
    text = (
        "gpu7:311:311 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
        + TITAN.format(clock="03:12,000") + "step: 401  loss:  6.41230  tps: 8,214\n"
        + TITAN.format(clock="03:14,000") + "step: 402  loss:  6.41230  tps: 8,214\n"
    )  # fmt: skip

    parsed(whole_store, tmp_path, text)

    found = whole_store.read("select attribute, value from staging.stg_run_attributes order by all")
    assert found.rows() == [("cuda_version", "13.0"), ("nccl_version", "2.28.9")]
