-- The hourly ledger by node, for pages that need no single GPU.
-- grain: cluster, node, gpu_model, mig_profile, hour_ms, job_run_key, attempt_key, category, phase
-- start_ms, end_ms: first and last of it in the hour
-- materialised: hourly of the ledger, since a fleet has a tenth as many rows of nodes as of GPUs
select
    cluster,
    node,
    gpu_model,
    mig_profile,
    job_run_key,
    attempt_key,
    category,
    phase,
    hour_ms,
    min(first_ms) as start_ms,
    max(last_ms) as end_ms,
    sum(gpu_ms)::bigint as gpu_ms
from marts.ledger_pieces
where
    hour_ms >= build_from_ms()
    and hour_ms < build_to_ms()
group by all
having sum(gpu_ms) <> 0
