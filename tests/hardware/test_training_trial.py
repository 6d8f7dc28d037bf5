"""A training loop on a real H200 without a scheduler: the ledger says what the loop did.

Recorded on 2026-11-23 (README.md); `truth.jsonl` is the loop's own clock.
"""

import functools
import json
from collections import Counter
from pathlib import Path

import pytest

from goodput_queries.check import check

TRIAL = Path(__file__).with_name("training_trial")
SAVED = 30  # step of the first life
TOLERANCE_S = 1.0
SPENT = {  # what the loop notes of it, by category
    "step_unsplit": "step", "lost_work": "lost_work", "checkpoint_save": "save",
    "restore": "restore", "startup": "startup", "idle_held": "pause",
}  # fmt: skip


@pytest.fixture(scope="module")
def seconds(ledger_of):
    """Return GPU-seconds by category of a ledger made of files, each choice of them once."""

    @functools.cache
    def found(*files):
        store = ledger_of(*(TRIAL / f"{name}.jsonl.gz" for name in files), cluster=None)
        assert check(store)["violations"].sum() == 0
        rows = store.read("select category, gpu_ms from marts.ledger_by_category").rows()
        return {category: gpu_ms / 1000 for category, gpu_ms in rows if gpu_ms}

    return found


@pytest.fixture(scope="module")
def truth():
    """Return the seconds that the loop spent, by the category that they belong to."""
    found = Counter[str]()
    for row in map(json.loads, (TRIAL / "truth.jsonl").read_text().splitlines()):
        is_lost = row["what"] == "step" and row["life"] == 0 and row["step"] >= SAVED
        found["lost_work" if is_lost else row["what"]] += row["end"] - row["start"]
    return found


def test_phases_are_within_a_second_of_what_the_loop_did(seconds, truth):
    found = seconds("job_events", "nvml")

    expected = {category: truth[what] for category, what in SPENT.items()}
    assert {c: found[c] for c in expected} == pytest.approx(expected, abs=TOLERANCE_S)
    assert "unknown" not in found
    assert "free_unknown" not in found
    assert found["idle_no_demand"] > 70  # 15 s before, 60 s after


def test_readings_alone_say_when_the_gpu_was_active(seconds, truth):
    found = seconds("nvml")

    assert set(found) == {"busy_unclassified", "idle_held", "idle_no_demand"}
    assert found["busy_unclassified"] >= truth["step"] + truth["lost_work"] - TOLERANCE_S
    assert found["idle_held"] >= truth["pause"] - TOLERANCE_S  # pauses between activity
    assert found["idle_no_demand"] > 70  # 15 s before, 60 s after
