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
