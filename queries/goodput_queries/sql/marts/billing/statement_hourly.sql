-- The ledger for statements: GPU time by job run, GPU model, category and hour.
-- grain: cluster, node, job_run_key, attempt_key, gpu_model, mig_profile, category, phase, hour_ms
-- node: of reserved time alone, since reservations name nodes
-- phase: of waits inside steps alone, since their blame depends on it
-- materialised: hourly, since a page cannot sum a month of single GPUs in time
select
    cluster,
    case when category = 'reserved_idle' then node end as node,
    job_run_key,
    attempt_key,
    gpu_model,
    mig_profile,
    category,
    case when category = 'straggler_wait' then phase end as phase,
    hour_ms,
    sum(gpu_ms)::bigint as gpu_ms
from marts.ledger_hourly_by_node
where
    hour_ms >= build_from_ms()
    and hour_ms < build_to_ms()
group by all
