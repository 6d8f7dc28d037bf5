"""Replayed steps: which part makes the difference, what a worker costs, which trace counts."""

from tests.queries.conftest import built_once, read_from_world

RUN = {"cluster": "c", "data_ranks": 2, "stages": 2, "steps": 10, "slowest_stage": 1,
       "recorded_s": 3.1, "undelayed_s": 3.0, "compute_s": 2.9, "worker_means_s": 2.8,
       "stage_means_s": 2.1, "ideal_s": 2.0, "without_slowest_stage_s": 2.5,
       "without_slowest_workers_s": 2.25, "forward_backward_correlation": 0.2}  # fmt: skip


@built_once
def world(evidence):
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


test_replays = read_from_world({
    "the largest part is the cause, and only the last trace of a run counts": (
        "select run_key, round(slowdown_ratio, 3), cause, round(slowest_stage_share, 3), "
        "round(slowest_workers_share, 3) from marts.pipeline_replays order by run_id",
        [("c/1", 1.5, "worker", 0.5, 0.75), ("c/even", 1.0, None, None, None)]),
    "a sentence says so": (
        "select left(regexp_extract(sentence, '63[.]6.*|^1[.]02.*'), 64) "
        "from marts.pipeline_replays order by run_id",
        [("63.6 % of the difference from workers that are slow in all steps",),
         ("1.02 times the ideal step: no stragglers",)]),
    "workers are ranked by what they cost alone": (
        "select dp_rank, stage, slowdown_ratio, round(excess_share, 6), max(place) over () "
        "from marts.pipeline_workers where run_key = 'c/1' order by place limit 2",
        [(1, 0, 1.3, 0.2, 4), (0, 1, 1.05, 0.033333, 4)]),
    # of 10 s stage 0 computes 4, stage 1 has 6; one micro-batch in two stages leaves half
    "a bubble is the forward and backward phase without the computing of the stage": (
        "select stage, micro_batches, round(bubble_ratio, 6), round(ideal_bubble_ratio, 6), "
        "schedule_bubble_ratio from marts.pipeline_bubbles where run_key = 'c/1' order by stage",
        [(0, 1, 0.6, 0.6, 0.5), (1, 1, 0.4, 0.6, 0.5)]),
})  # fmt: skip
