"""Several sources report one attempt: one is used for its steps, others add what it lacks."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("attempt", [None, 0])
def test_a_log_that_prints_the_same_steps_changes_nothing(evidence, job_events, attempt):
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1)
    steps = [*job_events.steps(1, 5, 10, data_s=2.0), *job_events.steps(6, 12, 100)]  # 40 s apart
    evidence.samples("a#0", evidence.every(0, 200, 1), lambda s: not 60 < s < 100)
    evidence.events("1", steps, attempt=attempt)
    alone = evidence.gpu_s()

    evidence.log("1", [{"event": "job.start", "t": 5}, *job_events.printed(steps)])

    assert evidence.gpu_s() == alone
    assert alone["idle_held"] == 40
    assert evidence.store.read("select attempts from marts.runs").item() == 1


@pytest.mark.parametrize("attempt", [None, 0])
@pytest.mark.parametrize("off_s", [-7200, -300, 55, 300, 7200])
def test_a_log_whose_clock_is_off_lengthens_no_step(evidence, job_events, off_s, attempt):
    evidence.node("a", 1)
    evidence.job("1", 0, 30_000, ["a"], 1)
    steps = [*job_events.steps(1, 5, 10_010), *job_events.steps(6, 12, 10_100)]
    events = [*steps, {**job_events.phase("ckpt_save", 10_060, 10_080), "step": 5}]
    evidence.events("1", events, attempt=attempt)
    alone = evidence.gpu_s()
    assert (alone["step_unsplit"], alone["checkpoint_save"]) == (120, 20)

    printed = [*job_events.printed(steps), events[-1]]
    evidence.log("1", [{**line, "t": line["t"] + off_s} for line in printed])

    assert evidence.gpu_s() == alone


@pytest.mark.parametrize(("off_s", "found"), [(7200, ["c/1#0: +7200 s"]), (3, [])])
def test_two_sources_whose_clocks_disagree_are_named(evidence, job_events, off_s, found):
    evidence.node("a", 1)
    evidence.job("1", 0, 30_000, ["a"], 1)
    steps = job_events.steps(1, 12, 10_010)
    evidence.events("1", steps)
    evidence.log("1", [{**line, "t": line["t"] + off_s} for line in steps])
    evidence.store.build()

    example = "select example from marts.data_quality where kind = 'clocks that disagree'"
    assert evidence.store.read(example).to_series().to_list() == found


def test_a_step_that_the_job_began_and_only_the_log_ended_counts(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    evidence.events("1", [*job_events.steps(1, 5, 10), {"event": "step.start", "step": 6, "t": 60}])
    evidence.log(
        "1", [{"event": "step", "step": 5, "t": 60.4}, {"event": "step", "step": 6, "t": 72}]
    )

    assert evidence.gpu_s()["step_unsplit"] == 62


def test_a_log_keeps_the_attempts_that_the_job_numbers_over_job_runs(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("7", 0, 100, ["a"], 1, "FAILED", job_name="r")
    evidence.job("8", 150, 310, ["a"], 1, job_name="r")
    first, second = job_events.steps(1, 8, 10), job_events.steps(5, 18, 160)
    evidence.events("r", [*first, job_events.durable(4, 50)], attempt=0)
    evidence.events("r", second, attempt=1)
    alone = evidence.gpu_s()

    evidence.log("r", [*job_events.printed(first), {"event": "failure", "kind": "nan", "t": 95}])
    evidence.log("r", [{"event": "job.start", "t": 152}, *job_events.printed(second)])

    assert evidence.gpu_s() == alone
    found = evidence.store.read(
        """select attempt, kind from intermediate.int_attempts
        left join intermediate.int_reported_failures using (attempt_key) order by all"""
    )
    assert found.rows() == [(0, "nan"), (1, None)]


def test_a_log_reports_steps_before_and_after_those_of_the_job(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1)
    evidence.events("1", job_events.steps(6, 10, 60), attempt=None)
    evidence.log("1", job_events.steps(1, 15, 10))

    found = evidence.gpu_s()

    assert found["step_unsplit"] == 150
    assert evidence.store.read("select steps from marts.attempts").item() == 15


def test_a_phase_that_only_the_log_reports_counts(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1)
    evidence.events("1", [*job_events.steps(1, 5, 10), *job_events.steps(6, 12, 80)])
    evidence.log("1", [job_events.phase("ckpt_save", 60, 78)])

    assert evidence.gpu_s()["checkpoint_save"] == 18


def test_of_a_phase_that_both_report_the_job_has_the_last_word(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1)
    events = [
        *job_events.steps(1, 5, 10),
        job_events.phase("ckpt_save", 60, 79),
        *job_events.steps(6, 12, 80),
    ]
    evidence.events("1", events)
    evidence.log("1", [job_events.phase("ckpt_save", 56, 85)])

    found = evidence.gpu_s()

    assert (found["checkpoint_save"], found["step_unsplit"]) == (19, 120)


def test_a_save_that_only_the_log_proves_keeps_steps(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1, "FAILED")
    evidence.events("1", job_events.steps(1, 8, 10))
    evidence.log("1", [job_events.durable(6, 75)])

    found = evidence.gpu_s()

    assert (found["step_unsplit"], found["lost_work"]) == (60, 20)


def test_a_log_that_cannot_report_saves_makes_no_doubt_of_what_the_job_says(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1, "FAILED")
    evidence.job("2", 100, 200, ["a"], 1)
    steps = job_events.steps(1, 8, 10)
    evidence.events("1", [*steps, job_events.durable(6, 75)])
    evidence.events("2", job_events.steps(7, 9, 110))
    alone = evidence.gpu_s()

    evidence.log("1", job_events.printed(steps))

    assert evidence.gpu_s() == alone


def test_tokens_that_only_the_log_counts_are_counted(evidence, job_events):
    evidence.node("a", 1)
    evidence.job("1", 0, 100, ["a"], 1)
    steps = job_events.steps(1, 8, 10)
    evidence.events("1", steps)
    evidence.log("1", [{**row, "tokens": 50.0} for row in job_events.printed(steps)])
    evidence.store.build()

    assert evidence.store.read("select sum(tokens) from marts.train_steps").item() == 400


@pytest.mark.parametrize("others", ["silent", "job.start", "steps"])
def test_rank_0_reports_the_waits_of_its_gang(evidence, job_events, others):
    evidence.node("a", 4)
    evidence.job("1", 0, 200, ["a"], 4)
    waits = {"data_s": 2.0, "comm_s": 1.0, "straggler_s": 1.0}
    evidence.events("1", [{"event": "job.start", "t": 1}, *job_events.steps(1, 15, 10, **waits)])
    for rank in (1, 2, 3):
        begun = [{"event": "job.start", "t": 1}]
        rows = {"silent": [], "job.start": begun, "steps": [*begun, *job_events.steps(1, 15, 10)]}
        if rows[others]:
            evidence.events("1", rows[others], rank=rank)

    found = evidence.gpu_s()

    assert (found["data_stall"], found["exposed_comm"], found["straggler_wait"]) == (120, 60, 60)


def test_where_several_ranks_report_waits_each_counts_for_itself(evidence, job_events):
    evidence.node("a", 4)
    evidence.job("1", 0, 200, ["a"], 4)
    for rank in range(4):
        waits = {"data_s": 2.0} if rank < 2 else {}
        evidence.events("1", job_events.steps(1, 15, 10, **waits), rank=rank)

    assert evidence.gpu_s()["data_stall"] == 2 * 30
