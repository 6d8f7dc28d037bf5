"""One job with an asynchronous save that blocks it for 5 s, in the log styles it may have."""

import tempfile
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.queries.conftest import START, built_together, durable, steps

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.source import JobLog

BLOCKED = {"step_unsplit": 190, "checkpoint_save": 5, "teardown": 5}
UNBLOCKED = {"step_unsplit": 190, "idle_held": 5, "teardown": 5}
STEPS = [*range(10, 101, 10), *range(115, 196, 10)]  # ends of steps 1 to 19
SAVING = (100, "saving checkpoint at iteration      10 to /ckpt in torch_dist format")
SCHEDULED = (105, "  scheduled an async checkpoint save at iteration      10 to /ckpt")
SAVED = (160, "  successfully saved checkpoint from iteration      10 to /ckpt")


def stamp(second):
    return f"{START + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


def megatron(*said, first=""):
    lines = [
        (at, f"iteration {step:8}/ 50000 | elapsed time per iteration (ms): 10000.0 | lm loss: 7 |")
        for step, at in enumerate(STEPS, 1)
    ]
    lines = sorted([*lines, *said], key=lambda line: line[0])
    return first + "".join(f" [{stamp(at)}.000000] {text}\n" for at, text in lines)


def titan(*said):
    lines = [(0, "Training starts at step 1")]
    lines += [(at, f"step: {step:2}  loss:  6.4  tps: 8,214") for step, at in enumerate(STEPS, 1)]
    lines = sorted([*lines, *said], key=lambda line: line[0])
    return "".join(f"[titan] {stamp(at)},000 - root - INFO - {text}\n" for at, text in lines)


# what it shows: the log, the ledger of its 200 s
LOGS = {
    "Megatron-LM with its setting and the scheduled line": (
        megatron(SAVING, SCHEDULED, SAVED, first="  async_save ............. True\n"), BLOCKED,
    ),
    "Megatron-LM without its setting": (megatron(SAVING, SCHEDULED, SAVED), BLOCKED),
    "Megatron-LM without the scheduled line": (megatron(SAVING, SAVED), UNBLOCKED),
    "Megatron-LM with its setting and without the scheduled line": (
        megatron(SAVING, SAVED, first="  async_save ............. True\n"), UNBLOCKED,
    ),
    "Megatron-LM with the end alone": (megatron(SAVED), UNBLOCKED),
    "torchtitan": (
        titan(
            (100, "Staging the checkpoint."),
            (105, "Finished staging the checkpoint in 5.00 seconds."),
        ),
        BLOCKED,
    ),
    "torchtitan before 2026": (
        titan(
            (100, "Saving the checkpoint (or staging if async is enabled)."),
            (105, "Finished saving the checkpoint (or staging if async is enabled)in 5.0 seconds."),
        ),
        BLOCKED,
    ),
}  # fmt: skip


def one_gpu(cluster):
    """Load the job, whose GPU rests for the 5 s that its save may block it."""
    cluster.node("a", 1)
    cluster.job("7", 0, 200, ["a"], 1)
    cluster.samples("a#0", cluster.every(-1, 200, 1), lambda s: not 100 < s <= 105)


@pytest.mark.parametrize(("log", "expected"), LOGS.values(), ids=LOGS)
@built_together
def test_a_log_gives_the_part_that_blocked(cluster, log, expected):
    options = ReadOptions(cluster=cluster.name, run_id="7", zone=ZoneInfo("UTC"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.log")
        path.write_text(log)
        for batch in JobLog(path, options).extract():
            cluster.load(batch.table, batch.rows.drop("source").to_dicts(), batch.source)
    one_gpu(cluster)
    yield
    assert cluster.gpu_s() == expected


# what it shows: what job events say of the save, the ledger
EVENTS = {
    "the blocking part": (
        [(100, "phase.start"), (105, "phase.end")], BLOCKED,
    ),
    "a save that ends after a step has ended": (
        [(100, "phase.start"), (160, "phase.end")], UNBLOCKED,
    ),
    "the end alone": ([(160, "phase.end")], UNBLOCKED),
}  # fmt: skip


@pytest.mark.parametrize(("marks", "expected"), EVENTS.values(), ids=EVENTS)
@built_together
def test_job_events_give_the_part_that_blocked(cluster, marks, expected):
    save = [{"event": event, "t": at, "phase": "ckpt_save"} for at, event in marks]
    cluster.events("7", [*steps(1, 10, 0), *steps(11, 19, 105), *save, durable(10, 160)])
    one_gpu(cluster)
    yield
    assert cluster.gpu_s() == expected
