"""Training with faults on a real H100, without a scheduler: each fault is a finding at its steps.

Recorded on 2026-11-24 (README.md); `truth.jsonl` says what was put in.
"""

import json
from datetime import UTC
from pathlib import Path

import pytest

from goodput_queries.check import check

SESSION = Path(__file__).with_name("faults")
FILES = [SESSION / f"{name}.jsonl.gz" for name in ("nvml", "job_events")]
TOLERANCE_S = 1.0
WAITED_S, STEPS_THAT_WAITED = 1.2, 20
SLOWER_S, SLOWER_STEPS = 0.15, 80


@pytest.fixture(scope="module")
def session(ledger_of):
    return ledger_of(*FILES)


@pytest.fixture(scope="module")
def findings(session):
    """Return the findings about runs."""
    return session.read("from marts.findings where kind <> 'data quality'").rows(named=True)


@pytest.fixture(scope="module")
def truth():
    """Return what was put into each run."""
    rows = map(json.loads, (SESSION / "truth.jsonl").read_text().splitlines())
    return {row["run"]: row for row in rows if "first_step" in row}


def of(findings, run):
    return {row["rule"]: row for row in findings if row["run_key"] == f"lab/{run}"}


def seconds_apart(moment, epoch_s):
    return abs(moment.replace(tzinfo=UTC).timestamp() - epoch_s)


def test_the_ledger_balances(session):
    assert check(session)["violations"].sum() == 0


def test_waits_for_input_have_their_price(findings):
    found = of(findings, "input")

    assert set(found) == {"input_stall"}
    lost = WAITED_S * STEPS_THAT_WAITED + 0.01 * 90  # each other step waited a little, too
    assert found["input_stall"]["gpu_ms"] / 1000 == pytest.approx(lost, abs=TOLERANCE_S)


def test_a_slow_host_is_slower_steps_from_the_first_one_on(findings, truth):
    found = of(findings, "slow-host")

    assert set(found) == {"steps_slower"}
    slower = found["steps_slower"]
    assert "at step 81" in slower["evidence"]
    assert seconds_apart(slower["since_at"], truth["slow-host"]["start"]) < TOLERANCE_S
    assert slower["gpu_ms"] / 1000 == pytest.approx(SLOWER_S * SLOWER_STEPS, abs=TOLERANCE_S)


def test_a_crash_is_a_failure_with_the_work_it_lost(session, findings, truth):
    lost = session.read(
        "select sum(gpu_ms) / 1000 from marts.ledger_pieces as s "
        "inner join intermediate.int_attempts as a using (attempt_key) "
        "where a.run_key = 'lab/crash' and s.category = 'lost_work'"
    ).item()

    assert "job_failure" in of(findings, "crash")
    steps_s = truth["crash"]["end"] - truth["crash"]["start"]
    assert lost == pytest.approx(steps_s, abs=TOLERANCE_S)


def test_a_loss_that_is_not_a_number_has_its_step(findings, truth):
    found = of(findings, "nan")

    assert set(found) == {"loss_not_finite"}
    assert found["loss_not_finite"]["evidence"].startswith("from step 41 of attempt 0")
    after = seconds_apart(found["loss_not_finite"]["since_at"], truth["nan"]["start"])
    assert after < TOLERANCE_S


def test_a_minute_of_memory_growth_or_of_silence_is_no_finding_yet(findings):
    """Growth is judged over ten-minute means; a run that its job alone reports stalls after 15."""
    assert of(findings, "memory") == {}
    assert set(of(findings, "hang")) == {"idle_allocation"}  # after it was killed


def test_the_hang_is_found_while_it_lasts_where_job_events_are_followed(ledger_of, tmp_path, truth):
    """A minute after its last step: an event of another job shows that events still come."""
    step = {"v": 1, "event": "step", "step": 1, "dur_s": 1, "run_id": "other", "rank": 0}
    line = step | {"host": "elsewhere", "ts": truth["hang"]["start"] + 61}
    (tmp_path / "other.jsonl").write_text(json.dumps(line) + "\n")
    store = ledger_of(*FILES, tmp_path / "other.jsonl")
    rows = store.read("select run_key, rule, confidence, evidence from marts.stalled_runs")
    ((run, rule, confidence, evidence),) = rows.rows()

    assert (run, rule, confidence) == ("lab/hang", "no_step", "Likely")
    assert evidence.startswith("no step for 61 s after step 60, usual one every 0.4 s")
