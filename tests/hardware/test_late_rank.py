"""A rank that was late for a while on two real GPUs is named by what the emitter measured.

Recorded on 2026-11-28 on two H200 (README.md): rank 1 slept before its forward for 60 ms in steps
40 to 99, where a step takes 22 ms.
"""

from pathlib import Path

import pytest

TRIAL = Path(__file__).with_name("late_rank")
WAITED_GPU_S = 60 * 0.06


@pytest.fixture(scope="module")
def stragglers(ledger_of):
    """Return the stragglers of both runs."""
    return ledger_of(*sorted(TRIAL.iterdir())).read("from marts.stragglers").rows(named=True)


@pytest.mark.parametrize("measured", ["communication", "parts"])
def test_the_late_rank_is_named_with_its_steps_and_the_wait_it_imposed(stragglers, measured):
    (found,) = [row for row in stragglers if row["run_id"] == measured]

    assert (found["rank"], found["first_step"], found["last_step"]) == (1, 40, 99)
    assert found["imposed_wait_gpu_s"] == pytest.approx(WAITED_GPU_S, rel=0.05)
