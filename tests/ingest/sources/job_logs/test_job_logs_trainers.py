"""What lines of HF Trainer, Lightning, NeMo, DeepSpeed and vLLM become."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from tests.ingest.job_log_lines import brief, parsed

from goodput_ingest.source import ReadOptions

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore


# Hugging Face Trainer


@pytest.mark.parametrize(
    "printed",
    [
        "{'loss': 1.9321, 'grad_norm': 0.8812, 'learning_rate': 4.5e-05, 'epoch': 0.12}",
        "{'loss': '1.932', 'grad_norm': '0.8812', 'learning_rate': '4.5e-05', 'epoch': '0.12'}",
    ],
    ids=["v4", "v5"],
)
def test_the_trainers_dictionaries_report_the_step_by_the_epoch_and_the_moment_by_a_collector(
    store: LocalStore, tmp_path: Path, printed: str
) -> None:
    text = (
        "2026-08-20T14:00:00Z ***** Running training *****\n"
        "2026-08-20T14:00:00Z   Num Epochs = 2\n"
        "2026-08-20T14:00:00Z   Total optimization steps = 5,000\n"
        f"2026-08-20T14:03:11.5Z {printed}\n"
    )

    events = parsed(store, tmp_path, text, ReadOptions())

    assert brief(events, "event", "at", "step") == [
        ("job.start", "14:00:00.000", None),
        ("step", "14:03:11.500", 300),
    ]


def test_a_save_of_the_trainer_lasts_as_far_as_its_files_are_reported_and_is_never_called_durable(
    store: LocalStore, tmp_path: Path
) -> None:
    stamp = "[INFO|trainer.py:3503] 2026-08-20 14:20:{second},000 >> "
    text = (
        stamp.format(second="02") + "Saving model checkpoint to out/checkpoint-500\n"
        + stamp.format(second="03") + "Configuration saved in out/checkpoint-500/config.json\n"
        + stamp.format(second="09") + "Model weights saved in out/checkpoint-500/m.safetensors\n"
        + stamp.format(second="11") + "Model weights saved in out/other/m.safetensors\n"
    )  # fmt: skip

    events = parsed(store, tmp_path, text)

    assert brief(events, "event", "at", "dur_s", "step") == [
        ("step", "14:20:02.000", None, 500),
        ("phase", "14:20:03.000", 1.0, None),
        ("phase", "14:20:09.000", 6.0, None),
    ]
    assert not any(e["reports_durability"] for e in events)


def test_an_evaluation_of_the_trainer_ends_when_it_is_printed(
    store: LocalStore, tmp_path: Path
) -> None:
    text = "2026-08-20T14:03:11Z {'eval_loss': '1.71', 'eval_runtime': '12.4', 'epoch': '0.5'}\n"

    events = parsed(store, tmp_path, text, ReadOptions())

    assert brief(events, "phase", "at", "dur_s") == [("eval", "14:03:11.000", 12.4)]


# Lightning


def test_of_a_bar_drawn_over_and_over_the_last_state_counts(
    store: LocalStore, tmp_path: Path
) -> None:
    bar = "\rEpoch 3:  45%|####      | {n}/1000 [02:15<02:45,  3.32it/s, v_num=7]"
    text = f"2026-08-20T14:03:11Z {bar.format(n=449)}{bar.format(n=450)}\n"

    assert brief(parsed(store, tmp_path, text, ReadOptions()), "step", "at") == [
        (3450, "14:03:11.000")
    ]


# NeMo


def test_nemo_counts_from_0_and_its_steps_lie_between_the_saves(
    store: LocalStore, tmp_path: Path
) -> None:
    nemo = "[NeMo I 2026-08-20 14:20:21 nemo_logging:393] "
    text = (
        nemo + "Global Checkpoint Load : Rank : 0 : Start time : 1787234520.000s : "
        "Time spent in load_checkpoint: 10.000s\n"
        + nemo + "Global Checkpoint Save : Rank: 0 : Iteration: 399 : "
        "Start time: 1787234600.000s : Save duration: 19.612s\n"
        "Training epoch 0, iteration 400/4999 | lr: 3e-05 | global_step: 400 | loss: 7.1 |\n"
        + nemo + "Global Checkpoint Save : Rank: 0 : Iteration: 401 : "
        "Start time: 1787234627.612s : Save duration: 1.000s\n"
        + nemo + "Async checkpoint save for step 402 (/c/step=401.ckpt) finalized successfully.\n"
    )  # fmt: skip

    events = parsed(store, tmp_path, text)

    assert [(e["step"], e["dur_s"]) for e in events if e["event"] == "step"] == [
        (400, None),
        (401, 4.0),
        (402, 4.0),
    ]
    assert [(e["phase"], e["dur_s"]) for e in events if e["event"] == "phase"] == [
        ("restore", 10.0),
        ("ckpt_save", 19.612),
        ("ckpt_save", 1.0),
    ]
    assert [e["step"] for e in events if e["event"] == "ckpt.durable"] == [402]


# DeepSpeed


def test_a_checkpoint_of_deepspeed_is_durable_when_it_is_ready_not_when_it_is_about_to_be_saved(
    store: LocalStore, tmp_path: Path
) -> None:
    stamp = "[2026-08-20 14:20:{second},000] [INFO] [logging.py:128:log_dist] "
    text = (
        stamp.format(second="00") + "[Rank 0] step=400, skipped=0, lr=[2.4e-05]\n"
        + stamp.format(second="02")
        + "[Rank 0] [Torch] Checkpoint global_step400 is about to be saved!\n"
        + stamp.format(second="09") + "[Torch] Checkpoint global_step400 is ready now!\n"
        + stamp.format(second="29") + "[Rank 0] step=410, skipped=0, lr=[2.4e-05]\n"
    )  # fmt: skip

    events = parsed(store, tmp_path, text)

    assert [(e["at"], e["step"]) for e in events if e["event"] == "ckpt.durable"] == [
        ("14:20:09.000", 400)
    ]
    steps = [e for e in events if e["event"] == "step"]
    assert [e["step"] for e in steps] == list(range(400, 411))
    assert sum(e["dur_s"] for e in steps[1:]) == pytest.approx(29.0)


# vLLM


def test_a_line_of_vllm_is_a_metric_whose_year_comes_from_when_it_was_read_out(
    store: LocalStore, tmp_path: Path
) -> None:
    text = (
        "INFO 12-31 23:59:59 [loggers.py:123] Engine 000: Avg prompt throughput: 812.4 tokens/s, "
        "Avg generation throughput: 1530.2 tokens/s, Running: 24 reqs, Waiting: 3 reqs, "
        "GPU KV cache usage: 41.7%, Prefix cache hit rate: 62.0%\n"
    )
    read_out = datetime(2026, 1, 2)  # noqa: DTZ001 -- moments are stored naive, in UTC
    options = ReadOptions(zone=ZoneInfo("UTC"), observed_at=read_out)

    (event,) = parsed(store, tmp_path, text, options)

    assert store.read("select ts from raw.job_events").item() == datetime(  # noqa: DTZ001
        2025, 12, 31, 23, 59, 59
    )
    assert json.loads(event["extra"]) == {
        "log": "vllm",
        "engine": 0,
        "prompt_tokens_per_s": 812.4,
        "generation_tokens_per_s": 1530.2,
        "running_requests": 24,
        "waiting_requests": 3,
        "kv_cache_ratio": pytest.approx(0.417),
    }
