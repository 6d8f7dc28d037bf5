"""One job with an asynchronous save that blocks it for 5 s, in the log styles it may have."""

import json
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import pytest
from tests.queries.conftest import START, built_together, durable, steps

from goodput_ingest.formats.json_text.json_lines import EPOCH
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


def titan():
    saves = [
        (100, "Staging the checkpoint."),
        (105, "Finished staging the checkpoint in 5.00 seconds."),
    ]
    return text_of(
        lambda at, line: f"[titan] {at:%Y-%m-%d %H:%M:%S},000 - root - INFO - {line}\n",
        [(0, "Training starts at step 1")],
        lambda step: f"step: {step:2}  loss:  6.4  tps: 8,214",
        saves,
    )


def titan_structured():
    def event(at, line):
        name, step, value = line.split()
        us = (at - EPOCH) // timedelta(microseconds=1)
        said = {"global_rank": 0, "host_name": "a", "step": int(step), "time_us": us}
        return json.dumps({**said, "log_type_name": name, "value": float(value)}) + "\n"

    saves = [(100, "checkpoint_save_start 10 0"), (105, "checkpoint_save_end 10 5000")]
    return text_of(event, [], lambda step: f"step_end {step} 10000", saves)


def nemo():
    start = (START - EPOCH).total_seconds() + 100
    saved = f"Rank: 0 : Iteration: 9 : Start time: {start:.3f}s : Save duration: 5.000s"
    saves = [
        (105, f"Global Checkpoint Save : {saved}"),
        (160, "Async checkpoint save for step 10 (/ckpt) finalized successfully."),
    ]
    return text_of(
        lambda at, line: dated(
            at, f"[NeMo I {at:%Y-%m-%d %H:%M:%S} nemo:1] {line}" if "heckpoint" in line else line
        ),
        [],
        lambda step: (
            f"Training epoch 0, iteration {step - 1}/499 | global_step: {step - 1} | "
            "train_step_timing in s: 10.0"
        ),
        saves,
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


def deepspeed():
    said = "[Nebula] Checkpoint global_step10 is"
    return text_of(
        lambda at, line: f"[{at:%Y-%m-%d %H:%M:%S},000] [INFO] [logging.py:1:log_dist] {line}\n",
        [],
        lambda step: f"[Rank 0] step={step}, skipped=0, lr=[2.4e-05]",
        [(100, f"{said} about to be saved!"), (160, f"{said} ready now!")],
    )


def hf():
    return text_of(
        dated,
        [(0, "***** Running training *****\n  Num Epochs = 1\n  Total optimization steps = 100")],
        lambda step: f"{{'loss': 6.4, 'epoch': {step / 100}}}",
        [
            (100, "Saving model checkpoint to /ckpt/checkpoint-10"),
            (105, "Model weights saved in /ckpt/checkpoint-10/model.safetensors"),
        ],
    )


def lightning():
    return text_of(
        dated,
        [(0, "Epoch 0:   0%|          | 0/100 [00:00<?, ?it/s]")],
        lambda step: f"Epoch 0:  {step}%|#         | {step}/100 [00:10<02:45,  0.1it/s]",
        [],
    )


def google():
    start = (START - EPOCH).total_seconds()
    begins = [start + (at - 10) for at in STEPS]
    said = [{"job_name": "7", "job_start_time": start}]
    said += [
        {"job_name": "7", "step_count": step, "step_start_time": at}
        for step, at in enumerate(begins, 1)
    ]
    save = {"checkpointer_blocking_start_time": start + 100}
    save |= {"checkpointer_blocking_duration_secs": 5.0}
    said.append({"step": 10, "event_type": "save", **save})
    said.append({"job_name": "7", "job_end_time": start + 195})
    return "".join(json.dumps(line) + "\n" for line in said)


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
    "torchtitan": (titan(), BLOCKED),
    "torchtitan's structured log": (titan_structured(), BLOCKED),
    "NeMo": (nemo(), BLOCKED),
    "Composer": (composer(*COMPOSER_SAVE), BLOCKED),
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
    "Google's goodput events and Orbax": (google(), BLOCKED),
    "Hugging Face Trainer": (hf(), BLOCKED),
    "Lightning": (lightning(), IN_STEP),  # its AsyncCheckpointIO logs nothing
    "DeepSpeed": (deepspeed(), {"startup": 10, "step_unsplit": 185, "teardown": 5}),
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
    cluster.node("a", 1)
    cluster.job("7", 0, 200, ["a"], 1)
    cluster.samples("a#0", cluster.every(-1, 200, 1), lambda s: not 100 < s <= 105)
