-- Replayed steps of a run, of the trace that was read last.
-- grain: cluster, run_id
select
    source,
    coalesce(cluster, 'default') as cluster,
    run_id,
    trace_id,
    data_ranks,
    stages,
    steps,
    recorded_s,
    undelayed_s,
    compute_s,
    worker_means_s,
    stage_means_s,
    ideal_s,
    slowest_stage,
    without_slowest_stage_s,
    without_slowest_workers_s,
    forward_backward_correlation
from raw.step_replays
qualify row_number() over (partition by coalesce(cluster, 'default'), run_id order by load_sequence desc, trace_id) = 1
