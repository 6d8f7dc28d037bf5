"""One job with an asynchronous save that blocks it for 5 s, in the log styles it may have."""

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest
from tests.queries.conftest import START, built_together, durable, steps

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise

BLOCKED = {"step_unsplit": 190, "checkpoint_save": 5, "teardown": 5}
# the pause is seen, not its reason
UNBLOCKED = {"step_unsplit": 190, "idle_held": 5, "teardown": 5}
IN_STEP = {"step_unsplit": 195, "teardown": 5}  # by a log that has neither lengths nor the save
STEPS = [*range(10, 101, 10), *range(115, 196, 10)]  # ends of steps 1 to 19


def text_of(form, begins, step, saves):
    """Return a log: what it says when training begins, of each step and of the save."""
    lines = [*begins, *((at, step(number)) for number, at in enumerate(STEPS, 1)), *saves]
    lines.sort(key=lambda line: line[0])
    return "".join(
        form(START + timedelta(seconds=at), line)
        for at, text in lines
        for line in text.splitlines()
    )


def dated(at, line):  # by a collector
    return f"{at:%Y-%m-%dT%H:%M:%SZ} {line}\n"


def megatron(*saves):
    said = {
        "set": (0, "async_save ............. True"),
        "from": (100, "saving checkpoint at iteration      10 to /ckpt in torch_dist format"),
        "until": (105, "scheduled an async checkpoint save at iteration      10 to /ckpt"),
        "saved": (160, "successfully saved checkpoint from iteration      10 to /ckpt"),
    }
    return text_of(
        lambda at, line: f"  {line}\n" if "..." in line else f" [{at:%Y-%m-%d %H:%M:%S}] {line}\n",
        [],
        lambda step: f"iteration {step:8}/ 500 | elapsed time per iteration (ms): 10000.0 |",
        [said[name] for name in saves],
    )


def composer(*saves):
    def form(at, line):
        if line[0] in "[\t":
            return dated(at, line)
        return f"{at:%Y-%m-%d %H:%M:%S},000: rank0[7][MainThread]: DEBUG: composer.{line}\n"

    return text_of(
        form,
        [(0, "trainer.trainer: Starting training loop")],
        lambda step: f"[batch={step}/500]:\n\t Train time/batch: {step - 1}",
        [(at, f"{module}: {said}") for at, module, said in saves],
    )


def maxtext(*saves):
    return text_of(
        lambda at, line: f"I{at:%m%d %H:%M:%S}.000000 7 a.py:1] {line}\n",
        [],
        lambda step: f"completed step: {step - 1}, seconds: 10.000, loss: 6.4",
        saves,
    )


ORBAX = "[process=0] [async] Finished"
COMPOSER_SAVE = (
    (100, "utils.checkpoint", "State dict created."),
    (100, "utils.checkpoint", "Saving monolithic checkpoint to /ckpt/ep0-ba10-rank0.pt"),
    (105, "callbacks.checkpoint_saver", "Checkpoint locally saved to /ckpt/ep0-ba10-rank0.pt"),
    (105, "callbacks.checkpoint_saver", "Uploading checkpoint to bucket/ep0-ba10-rank0.pt"),
)
# what it shows: the log, the ledger of its 200 s
LOGS = {
    "Megatron-LM": (megatron("set", "from", "until", "saved"), BLOCKED),
    "Megatron-LM without its setting": (megatron("from", "until", "saved"), BLOCKED),
    "Megatron-LM without the scheduled line": (megatron("from", "saved"), UNBLOCKED),
    "Megatron-LM with its setting alone": (megatron("set", "from", "saved"), UNBLOCKED),
    "Megatron-LM with the end alone": (megatron("saved"), UNBLOCKED),
    "Composer with the end alone": (composer(*COMPOSER_SAVE[2:]), IN_STEP),
    "Composer without its level DEBUG": (composer(), IN_STEP),
    "MaxText and Orbax": (
        maxtext(
            (105, f"{ORBAX} blocking save in 5.00 seconds. Continuing save @ /ckpt/9."),
            (160, f"{ORBAX} save (blocking + background) in 60.00 seconds @ /ckpt/9"),
        ),
        BLOCKED,
    ),
    "MaxText and Orbax before 2025": (
        maxtext(
            (105, "Finished blocking save in 5.00 seconds. Continuing to write to /ckpt/9."),
            (
                160,
                "Finished async_save (blocking + background). "
                "Time taken: 60.000000s. directory=/ckpt/9",
            ),
        ),
        BLOCKED,
    ),
    "MaxText and Orbax with the end alone": (
        maxtext((160, f"{ORBAX} save (blocking + background) in 60.00 seconds @ /ckpt/9")),
        UNBLOCKED,
    ),
    "MaxText and Orbax, synchronous": (
        maxtext(
            (103, "[process=0] [sync] Finished blocking save in 3.00 seconds. Continuing @ /9."),
            (105, "[process=0] [sync] Finished save in 5.00 seconds @ /ckpt/9"),
        ),
        BLOCKED,
    ),
}


@pytest.mark.parametrize(("log", "expected"), LOGS.values(), ids=LOGS)
@built_together
def test_a_log_gives_the_part_that_blocked(cluster, log, expected):
    job(cluster)
    now = START + timedelta(days=1)
    options = ReadOptions(cluster.name, run_id="7", zone=ZoneInfo("UTC"), observed_at=now)
    with TemporaryDirectory() as folder:
        path = Path(folder, "train.log")
        path.write_text(log)
        for batch in recognise(path)(path, options).extract():
            cluster.store.load(batch)
    yield
    assert cluster.gpu_s() == expected


# what it shows: what job events say of the save, the ledger
EVENTS = {
    "the blocking part": ([(100, "phase.start"), (105, "phase.end")], BLOCKED),
    "a save that ends after a step has ended": (
        [(100, "phase.start"), (160, "phase.end")], UNBLOCKED,
    ),
    "the end alone": ([(160, "phase.end")], UNBLOCKED),
}  # fmt: skip


@pytest.mark.parametrize(("marks", "expected"), EVENTS.values(), ids=EVENTS)
@built_together
def test_job_events_give_the_part_that_blocked(cluster, marks, expected):
    job(cluster)
    save = [{"event": event, "t": at, "phase": "ckpt_save"} for at, event in marks]
    cluster.events("7", [*steps(1, 10, 0), *steps(11, 19, 105), *save, durable(10, 160)])
    yield
    assert cluster.gpu_s() == expected


def job(cluster):
    cluster.job_on_a_node("7", 0, 200, 1)
    cluster.samples("a#0", cluster.every(-1, 200, 1), lambda s: not 100 < s <= 105)
