"""Replayed steps: which part makes the difference, what a worker costs, which trace counts."""

from tests.queries.conftest import built_once, read_from_world
from tests.tables import table

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


test_replays = read_from_world(table(__file__, "test_replays"))
