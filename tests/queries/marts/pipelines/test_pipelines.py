"""Replayed steps: which part makes the difference, what a worker costs, which trace counts."""

import pytest

from goodput_queries.scope import Scope

RUN = {
    "cluster": "c", "data_ranks": 2, "stages": 2, "steps": 10, "slowest_stage": 1,
    "recorded_s": 3.1, "undelayed_s": 3.0, "compute_s": 2.9,
    "worker_means_s": 2.8, "stage_means_s": 2.1, "ideal_s": 2.0,
    "without_slowest_stage_s": 2.5, "without_slowest_workers_s": 2.25,
    "forward_backward_correlation": 0.2,
}  # fmt: skip


@pytest.fixture(scope="module")
def replayed(shared_evidence):
    evidence = shared_evidence
    evidence.load("step_replays", [{**RUN, "run_id": "1", "trace_id": "old", "ideal_s": 1.0}])
    even = {**RUN, "run_id": "even", "trace_id": "even", "recorded_s": 2.05, "undelayed_s": 2.0}
    evidence.load("step_replays", [{**RUN, "run_id": "1", "trace_id": "new"}, even])
    evidence.load("replayed_parts", [
        {"trace_id": trace, "part": "worker", "dp_rank": rank, "stage": stage, "step_s": seconds}
        for trace in ("old", "new")
        for rank, stage, seconds in ((0, 0, 2.0), (0, 1, 2.1), (1, 0, 2.6), (1, 1, 2.0))
    ])  # fmt: skip
    evidence.load("replayed_operations", [
        {"trace_id": "new", "step": 1, "dp_rank": 0, "stage": stage, "operation": operation,
         "place": 0, "start_s": start, "end_s": end, "ideal_start_s": start,
         "ideal_end_s": start + 2}
        for stage, operation, start, end in (
            (0, "forward-compute", 0, 2), (1, "forward-compute", 2, 5),
            (1, "backward-compute", 5, 8), (0, "backward-compute", 8, 10),
            (0, "grads-reduce-scatter", 10, 12),
        )
    ])  # fmt: skip
    evidence.job_on_a_node("1", 0, 600, 2)
    evidence.build()
    return evidence


def test_the_largest_part_is_the_cause_and_only_the_last_trace_of_a_run_counts(replayed):
    rows = replayed.store.read(
        "select run_key, round(slowdown_ratio, 3), cause, round(slowest_stage_share, 3),"
        " round(slowest_workers_share, 3), sentence from marts.pipeline_replays order by run_id"
    ).rows()

    assert [row[:5] for row in rows] == [
        ("c/1", 1.5, "worker", 0.5, 0.75),
        ("c/even", 1.0, None, None, None),
    ]
    assert "63.6 % of the difference from workers that are slow in all steps" in rows[0][5]
    assert rows[1][5] == "1.02 times the ideal step: no stragglers"


def test_workers_are_ranked_by_what_they_cost_alone(replayed):
    found = replayed.store.read(
        "select dp_rank, stage, slowdown_ratio, excess_share from marts.pipeline_workers"
        " where run_key = 'c/1' order by place",
        scope=Scope(run="c/1"),
    ).rows()

    assert [row[:3] for row in found[:2]] == [(1, 0, 1.3), (0, 1, 1.05)]
    assert found[0][3] == pytest.approx(0.2)
    assert len(found) == 4


def test_a_bubble_is_the_forward_and_backward_phase_without_the_computing_of_the_stage(replayed):
    """Of 10 s stage 0 computes 4, stage 1 has 6; one micro-batch in two stages leaves half."""
    found = replayed.store.read(
        "select stage, micro_batches, bubble_ratio, ideal_bubble_ratio, schedule_bubble_ratio"
        " from marts.pipeline_bubbles where run_key = 'c/1' order by stage"
    ).rows()

    assert found == [
        (0, 1, pytest.approx(0.6), pytest.approx(0.6), 0.5),
        (1, 1, pytest.approx(0.4), pytest.approx(0.6), 0.5),
    ]
