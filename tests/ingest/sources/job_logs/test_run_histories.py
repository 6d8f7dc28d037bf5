"""Which metric of a run is its steps, and which run it is by the folders that trackers make."""

import struct

import pytest
from tests.ingest.golden_cases import GOLDEN

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.run_history import of_steps
from goodput_ingest.sources.job_logs.tensorboard import CHECKSUM_BYTES, FRAME
from goodput_ingest.sources.registry import recognise

HISTORY = '{"_step": 1, "_timestamp": 1795805154.0, "loss": 3}\n'
ENTRY = "1795805150561 3.0 1\n"
EVENTS = (GOLDEN / "tensorboard/scalars_of_every_second_step/input.tfevents").read_bytes()


def events_of(path, content, **options):
    """Return (run, event, step, loss) of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    batches = recognise(path)(path, ReadOptions(**options)).extract()
    return [row for b in batches for row in b.rows.select("run_id", "event", "step", "loss").rows()]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["lr", "train/loss"], "train/loss"),
        (["eval/loss", "lr"], "lr"),
        (["train_loss", "grad_norm"], "train_loss"),
        (["lm loss", "lm loss validation"], "lm loss"),
        (["system/gpu_0_utilization", "eval_loss"], None),
    ],
)
def test_steps_are_entries_of_the_training_loss_else_of_another_metric_of_training(names, chosen):
    assert of_steps(names) == chosen


def test_of_the_metrics_of_an_mlflow_run_one_gives_steps_and_another_says_that_it_is_there(
    tmp_path,
):
    metrics = tmp_path / "mlruns" / "1" / "5a4c" / "metrics"

    steps = events_of(metrics / "train" / "loss", ENTRY)
    others = events_of(metrics / "a", ENTRY)

    assert steps == [("5a4c", "step", 1, 3.0)]
    assert others == [("5a4c", "metric", None, None)]


@pytest.mark.parametrize(
    ("folder", "run"),
    [("wandb/offline-run-20261127_184553-grymqhhh/files", "grymqhhh"), ("exports", "llama")],
)
def test_a_wandb_run_is_that_of_its_folder_else_of_the_file(tmp_path, folder, run):
    assert events_of(tmp_path / folder / "llama.jsonl", HISTORY) == [(run, "step", 1, 3.0)]
    assert events_of(tmp_path / folder / "llama.jsonl", HISTORY, run_id="a")[0][0] == "a"


def test_a_tensorboard_run_is_its_folder_and_what_is_below_for_validation_has_no_steps(tmp_path):
    name = "events.out.tfevents.1"

    plain = events_of(tmp_path / "runs" / "llm" / name, EVENTS)
    of_training = events_of(tmp_path / "runs" / "llm" / "train" / name, EVENTS)
    of_validation = events_of(tmp_path / "runs" / "llm" / "validation" / name, EVENTS)

    assert {run for run, *_ in plain} == {run for run, *_ in of_training} == {"llm"}
    assert {event for _, event, *_ in plain} == {"step", "metric"}
    assert {(run, event) for run, event, *_ in of_validation} == {("llm", "metric")}


def test_a_scalar_whose_step_is_none_is_rejected_and_those_after_it_are_read(tmp_path):
    step = b"\x10" + b"\xff" * 9 + b"\x01"  # -1
    summary = b"\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x40"
    data = b"\x09" + struct.pack("<d", 1795805148.0) + step + b"\x2a\x0d" + summary
    first = FRAME.size + FRAME.unpack(EVENTS[: FRAME.size])[0] + CHECKSUM_BYTES
    record = FRAME.pack(len(data), 0) + data + bytes(CHECKSUM_BYTES)
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(EVENTS[:first] + record + EVENTS[first:])

    (batch,) = recognise(path)(path, ReadOptions()).extract()

    assert [reject.reason for reject in batch.rejects] == [
        "tensorboard: record 2: step is out of range."
    ]
    assert batch.rows.filter(event="step")["step"].max() == 12
