"""Failures, their causes and restarts in a job's log."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from tests.ingest.job_log_lines import ITERATION, brief, parsed

from goodput_ingest.source import ReadOptions
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore

BLOCK = """\
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-08-20_14:31:05
  host      : node005
  rank      : 28 (local_rank: 4)
  exitcode  : 1 (pid: 51221)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-08-20_14:31:02
  host      : node004
  rank      : 27 (local_rank: 3)
  exitcode  : -9 (pid: 51220)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 51220
============================================================
"""


def test_of_a_torchrun_block_the_root_cause_is_the_failure(
    store: LocalStore, tmp_path: Path
) -> None:
    (event,) = parsed(store, tmp_path, BLOCK)

    assert (event["event"], event["at"], event["kind"]) == ("failure", "14:31:02.000", "sigkill")
    assert event["msg"] == "exit code -9 (SIGKILL) of rank 27 on node004"


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("E820 14:41:09.114302112", datetime(2025, 8, 20, 14, 41, 9, 114302)),  # noqa: DTZ001
        ("E1118 14:41:09.114302", datetime(2025, 11, 18, 14, 41, 9, 114302)),  # noqa: DTZ001
        ("E102 00:00:09.114302", datetime(2026, 1, 2, 0, 0, 9, 114302)),  # noqa: DTZ001
    ],
    ids=["month of one digit", "month of two", "after New Year"],
)
@pytest.mark.parametrize("label", ["[rank3]:", ""])
def test_a_watchdogs_stamp_has_no_year_and_an_unpadded_month(
    store: LocalStore, tmp_path: Path, label: str, stamp: str, at: datetime
) -> None:
    text = (
        ITERATION.format(second=20, step=3, ms=2000.0).replace("2026", "2025")
        + f"{label}[{stamp} ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=2635, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600024 milliseconds before timing out.\n"
    )

    parsed(store, tmp_path, text)

    ((found, kind, extra),) = store.read(
        "select ts, kind, extra::varchar from raw.job_events where event = 'failure'"
    ).rows()
    assert (found, kind) == (at, "nccl_timeout")
    assert json.loads(extra)["rank"] == 3
    assert json.loads(extra)["ran_ms"] == 600024


def test_a_watchdog_without_any_year_before_it_is_rejected(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        "[rank3]:[E820 14:41:09.114302112 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=2635, OpType=ALLREDUCE, NumelIn=8, "
        "Timeout(ms)=600000) ran for 600024 milliseconds before timing out.\n"
        + ITERATION.format(second=20, step=3, ms=2000.0)
    )

    events = parsed(store, tmp_path, text)

    assert [e["event"] for e in events] == ["step"]
    assert "has no year" in store.read("select reason from raw.rejects").item()


@pytest.mark.parametrize("error", ["torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError"])
def test_want_of_memory_is_put_at_the_last_moment_reported_and_says_so(
    store: LocalStore, tmp_path: Path, error: str
) -> None:
    text = (
        ITERATION.format(second=20, step=3, ms=2000.0)
        + f"[rank5]: {error}: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 1.58 GiB is free.\n"
    )

    failure = next(e for e in parsed(store, tmp_path, text) if e["event"] == "failure")

    assert (failure["kind"], failure["at"]) == ("oom", "14:03:20.500")
    assert json.loads(failure["extra"]) == {
        "log": "cuda-oom",
        "rank": 5,
        "at": "the last time before it",
    }


def test_restart_cycles_of_nvrx_end_one_life_and_begin_the_next(
    store: LocalStore, tmp_path: Path
) -> None:
    line = "  - Cycle: {} Event: {} Node: {} Rank: {} Time: 2026-08-20 14:31:{:02}.118 UTC\n"
    text = (
        line.format(0, "worker_start_started", "node001", 0, 0)
        + line.format(0, "worker_start_started", "node002", 8, 1)
        + line.format(1, "failure_detected", "node004", 27, 20)
        + line.format(1, "failure_detected", "node001", 0, 21)
        + line.format(1, "worker_terminated", "node001", 0, 22)
        + line.format(1, "worker_start_started", "node001", 0, 30)
    )

    events = parsed(store, tmp_path, text, ReadOptions())

    assert brief(events, "event", "at") == [
        ("job.start", "14:31:00.118"),
        ("failure", "14:31:20.118"),
        ("job.start", "14:31:30.118"),
    ]
    assert events[1]["msg"] == "NVRx cycle 1: failure detected on node004, rank 27"


@pytest.mark.parametrize(
    ("why", "kind"),
    [("", "other"), (" DUE TO TIME LIMIT", "other"), (" DUE TO PREEMPTION", "preempted")],
)
def test_the_schedulers_word_ends_the_life(
    store: LocalStore, tmp_path: Path, why: str, kind: str
) -> None:
    text = (
        f"slurmstepd: error: *** JOB 19 ON r6i4n5 CANCELLED AT 2026-08-20T14:52:36{why} ***\n"
        f"slurmstepd: error: *** STEP 19.0 ON r6i4n5 CANCELLED AT 2026-08-20T14:52:36{why} ***\n"
    )

    events = parsed(store, tmp_path, text)

    assert brief(events, "event", "kind") == [("failure", kind), ("job.end", None)]


HANG = (
    "[2026-08-20 14:40:52.326] starting run hang attempt 0: world size 4\n"
    "[rank3]:[E820 14:41:09.582826421 ProcessGroupNCCL.cpp:689] [Rank 3] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=45, OpType=ALLREDUCE, NumelIn=3, "
    "Timeout(ms)=14000) ran for 14061 milliseconds before timing out.\n"
)


def test_a_watchdogs_year_is_that_of_any_line_before_it(store: LocalStore, tmp_path: Path) -> None:
    (event,) = parsed(store, tmp_path, HANG)

    assert (event["event"], event["kind"], event["at"]) == (
        "failure",
        "nccl_timeout",
        "14:41:09.582",
    )
    assert store.read("select year(ts) from raw.job_events").item() == 2026


def test_a_watchdogs_log_is_refused_until_its_zone_is_given(
    store: LocalStore, tmp_path: Path
) -> None:
    with pytest.raises(IngestError, match="Name their time zone with --timezone"):
        parsed(store, tmp_path, HANG, ReadOptions())


def test_a_log_of_which_no_line_could_be_read_says_what_was_wrong_with_the_first(
    store: LocalStore, tmp_path: Path
) -> None:
    with pytest.raises(IngestError, match=r"line 1: the stamp 08-20 .* has no year"):
        parsed(store, tmp_path, HANG.partition("\n")[2])
