-- The hours that the window cuts by node, as marts.ledger_hourly_by_node has the others.
-- grain: cluster, node, gpu_model, mig_profile, hour_ms, job_run_key, attempt_key, category, phase
-- evaluated: first
-- start_ms, end_ms: first and last of it in the hour
-- gpu_ms: milliseconds of a whole GPU
select
    cluster, node, gpu_model, mig_profile, job_run_key, attempt_key, category, phase, hour_ms,
    min(start_ms) as start_ms, max(end_ms) as end_ms, sum(gpu_ms)::bigint as gpu_ms
from intermediate.int_cut_hours
group by all
having sum(gpu_ms) <> 0
