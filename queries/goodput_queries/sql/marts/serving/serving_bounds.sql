-- Of the time in which serving engines had requests of models with an objective, how much was within it, at least and at
-- most, by job run. A request log is exact; histograms of single latencies leave a range.
-- grain: cluster, job_run_key
-- access: team
-- job_run_key: null: nobody is known to have had the GPUs; run_key, team: of it
-- useful_lo_gpu_ms: within the objective, at least: what the ledger has as productive
-- useful_hi_gpu_ms: at most: with what is within it or not (at risk, phase objective_unknown)
-- missed_gpu_ms: not within it for sure (lost work, phase slo_miss)
-- unsplit_gpu_ms: of models without an objective; standby_gpu_ms, load_gpu_ms: no request, model load
-- attained_lo_ratio, attained_hi_ratio: within the objective, of the time in which requests had one; null: no such time
with served as (
    select
        cluster, job_run_key,
        any_value(run_key) as run_key,
        any_value(team) as team,
        coalesce(sum(gpu_ms) filter (phase = 'serving' and category = 'productive'), 0)::bigint as useful_lo_gpu_ms,
        coalesce(sum(gpu_ms) filter (phase = 'objective_unknown'), 0)::bigint as open_gpu_ms,
        coalesce(sum(gpu_ms) filter (phase = 'slo_miss'), 0)::bigint as missed_gpu_ms,
        coalesce(sum(gpu_ms) filter (phase = 'serving' and category = 'step_unsplit'), 0)::bigint as unsplit_gpu_ms,
        coalesce(sum(gpu_ms) filter (phase = 'standby'), 0)::bigint as standby_gpu_ms,
        coalesce(sum(gpu_ms) filter (phase = 'model_load'), 0)::bigint as load_gpu_ms
    from marts.ledger_scoped_by_node
    where is_serving(phase)
    group by cluster, job_run_key
)

select
    cluster,
    job_run_key,
    run_key,
    team,
    useful_lo_gpu_ms,
    useful_lo_gpu_ms + open_gpu_ms as useful_hi_gpu_ms,
    missed_gpu_ms,
    unsplit_gpu_ms,
    standby_gpu_ms,
    load_gpu_ms,
    useful_lo_gpu_ms / nullif(useful_lo_gpu_ms + open_gpu_ms + missed_gpu_ms, 0) as attained_lo_ratio,
    (useful_lo_gpu_ms + open_gpu_ms) / nullif(useful_lo_gpu_ms + open_gpu_ms + missed_gpu_ms, 0) as attained_hi_ratio
from served
