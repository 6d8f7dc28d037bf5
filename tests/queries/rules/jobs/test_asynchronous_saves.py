"""One job with an asynchronous save that blocks it for 5 s, by job events and in log styles."""

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from tests.queries.conftest import START, Cluster, durable, each, shown_by, steps

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.registry import recognise

BLOCKED = {"step_unsplit": 190, "checkpoint_save": 5, "teardown": 5}
# the pause is seen, not its reason
UNBLOCKED = {"step_unsplit": 190, "idle_held": 5, "teardown": 5}
STEPS = [*range(10, 101, 10), *range(115, 196, 10)]  # ends of steps 1 to 19


def text_of(form, step, saves):
    """Return a log: what it says of each step and of the save."""
    lines = [*((at, step(number)) for number, at in enumerate(STEPS, 1)), *saves]
    lines.sort(key=lambda line: line[0])
    return "".join(form(START + timedelta(seconds=at), text) for at, text in lines)


def megatron(*saves):
    said = {
        "set": (0, "async_save ............. True"),
        "from": (100, "saving checkpoint at iteration      10 to /ckpt in torch_dist format"),
        "until": (105, "scheduled an async checkpoint save at iteration      10 to /ckpt"),
        "saved": (160, "successfully saved checkpoint from iteration      10 to /ckpt"),
        "last from": (195, "saving checkpoint at iteration      19 to /ckpt in torch_dist format"),
        "last saved": (200, "successfully saved checkpoint from iteration      19 to /ckpt"),
    }
    return text_of(
        lambda at, line: f"  {line}\n" if "..." in line else f" [{at:%Y-%m-%d %H:%M:%S}] {line}\n",
        lambda step: f"iteration {step:8}/ 500 | elapsed time per iteration (ms): 10000.0 |",
        [said[name] for name in saves],
    )


def maxtext(*saves):
    return text_of(lambda at, line: f"I{at:%m%d %H:%M:%S}.000000 7 a.py:1] {line}\n",
                   lambda step: f"completed step: {step - 1}, seconds: 10.000, loss: 6.4",
                   saves)  # fmt: skip


def composer(*saves):
    """Return a log whose rounds a collector dated."""
    said = "{at:%Y-%m-%d %H:%M:%S},000: rank0[7][MainThread]: DEBUG: composer.{line}\n"

    def dated(at, text):
        forms = {True: said, False: "{at:%Y-%m-%dT%H:%M:%SZ} {line}\n"}
        lines = text.splitlines()
        return "".join(forms[line[:9] == "callbacks"].format(at=at, line=line) for line in lines)

    saver = "callbacks.checkpoint_saver: {} bucket/ep0-ba10-rank0.pt"
    return text_of(dated, lambda step: f"[batch={step}/500]:\n\t Train time/batch: {step - 1}",
                   [(at, saver.format(line)) for at, line in saves])  # fmt: skip


def job(cluster):
    cluster.job_on_a_node("7", 0, 200, 1)
    cluster.samples("a#0", cluster.every(-1, 200, 1), lambda s: not 100 < s <= 105)


TOOK = "Time taken: 60.000000s. directory=/ckpt/9"
SYNC = "[process=0] [sync] Finished"


# what it shows, beside what golden cases of logs show: the log, the ledger of its 200 s
@each({
    "Megatron-LM": (megatron("set", "from", "until", "saved"), BLOCKED),
    "Megatron-LM without its setting": (megatron("from", "until", "saved"), BLOCKED),
    "Megatron-LM without the scheduled line": (megatron("from", "saved"), UNBLOCKED),
    "Megatron-LM whose last save, as those before, has no scheduled line": (
        megatron("from", "saved", "last from", "last saved"), UNBLOCKED),
    "Composer with the end alone has neither lengths nor the save": (
        composer((105, "Checkpoint locally saved to"), (105, "Uploading checkpoint to")),
        {"startup": 10, "step_unsplit": 185, "teardown": 5}),
    "MaxText and Orbax before 2025": (
        maxtext((105, "Finished blocking save in 5.00 seconds. Continuing to write to /ckpt/9."),
                (160, f"Finished async_save (blocking + background). {TOOK}")), BLOCKED),
    "MaxText and Orbax, synchronous": (
        maxtext((103, f"{SYNC} blocking save in 3.00 seconds. Continuing @ /9."),
                (105, f"{SYNC} save in 5.00 seconds @ /ckpt/9")), BLOCKED),
})  # fmt: skip
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
test_job_events_give_the_part_that_blocked = shown_by({
    "the blocking part": ([(100, "phase.start"), (105, "phase.end")], BLOCKED),
    "a save that ends after a step has ended": (
        [(100, "phase.start"), (160, "phase.end")], UNBLOCKED),
    "the end alone": ([(160, "phase.end")], UNBLOCKED),
}, before=job, read=Cluster.gpu_s, load=lambda c, marks: c.events("7", [
    *steps(1, 10, 0), *steps(11, 19, 105), durable(10, 160),
    *({"event": event, "t": at, "phase": "ckpt_save"} for at, event in marks)]))  # fmt: skip
