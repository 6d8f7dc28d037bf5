"""Tokens, samples, FLOPs and MFU that logs print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.ingest.job_log_lines import parsed

if TYPE_CHECKING:
    from pathlib import Path

    from goodput_queries.storage.store import LocalStore

TITAN = "[titan] 2026-08-20 14:{clock} - root - INFO - "
MEGATRON = (
    " [2026-08-20 14:03:{second:02}.000000] iteration {step:8}/   50000 |"
    " consumed samples: {samples:12} |"
    " elapsed time per iteration (ms): 2000.0 | throughput per GPU (TFLOP/s/GPU): 412.5 |{more}\n"
)


def amounts(store: LocalStore, folder: Path, text: str) -> list[tuple[object, ...]]:
    parsed(store, folder, text)
    return store.read(
        """select step, samples, gpu_tokens, gpu_flops, mfu_ratio from raw.job_events
        where event = 'step' order by step"""
    ).rows()


def test_torchtitan_prints_rates_of_one_gpu(store: LocalStore, tmp_path: Path) -> None:
    """Of 8 s and 4 steps: 2 s each. The first line has no time before it."""
    line = "step: {}  loss:  6.41  tps: 8,214  tflops: 402.50  mfu: 40.66%\n"
    text = TITAN.format(clock="03:12,000") + line.format(401)
    text += TITAN.format(clock="03:20,000") + line.format(405)

    found = amounts(store, tmp_path, text)

    assert found[0] == (401, None, None, None, pytest.approx(0.4066))
    assert found[4] == (405, None, 16_428.0, pytest.approx(805e12), pytest.approx(0.4066))
    assert len(found) == 5


def test_a_quantised_model_of_torchtitan_has_no_mfu_and_says_so(
    whole_store: LocalStore, tmp_path: Path
) -> None:
    text = TITAN.format(clock="03:12,000") + "step: 401  loss:  6.4  tps: 8,214  mfu: N/A\n"

    assert amounts(whole_store, tmp_path, text)[0][4] is None
    assert whole_store.read("select dtype from staging.stg_job_models").item() == "quantised"


def test_megatron_prints_the_batch_or_what_was_consumed(store: LocalStore, tmp_path: Path) -> None:
    """A release that prints no batch size has it as the difference of two lines."""
    text = MEGATRON.format(second=2, step=10, samples=5120, more="")
    text += MEGATRON.format(second=6, step=12, samples=6144, more="")
    text += MEGATRON.format(second=8, step=13, samples=6400, more=" global batch size:   256 |")

    assert amounts(store, tmp_path, text) == [
        (10, None, None, pytest.approx(825e12), None),
        (11, 512.0, None, pytest.approx(825e12), None),
        (12, 512.0, None, pytest.approx(825e12), None),
        (13, 256.0, None, pytest.approx(825e12), None),
    ]


def test_a_line_of_very_many_steps_has_the_sum_of_them(store: LocalStore, tmp_path: Path) -> None:
    text = MEGATRON.format(second=2, step=10, samples=5120, more="")
    text += MEGATRON.format(second=6, step=3010, samples=5120 + 3000, more="")

    assert amounts(store, tmp_path, text)[-1][:2] == (3010, 3000.0)


def test_nemo_prints_the_global_batch(store: LocalStore, tmp_path: Path) -> None:
    text = (
        "2026-08-20T14:03:12Z Training epoch 0, iteration 119/4999 | lr: 3e-05 | "
        "global_batch_size: 512 | global_step: 119 | train_step_timing in s: 4.021\n"
    )

    assert amounts(store, tmp_path, text) == [(120, 512.0, None, None, None)]
