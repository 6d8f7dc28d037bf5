-- The ledger by hour: GPU-milliseconds by unit, hour, attempt, category and phase.
-- grain: gpu_uuid, gpu_instance, hour_ms, job_run_key, attempt_key, category, phase
select
    cluster,
    node,
    gpu_uuid,
    gpu_instance,
    gpu_model,
    mig_profile,
    job_run_key,
    attempt_key,
    category,
    phase,
    hour_ms,
    sum(gpu_ms)::bigint as gpu_ms
from marts.ledger_pieces
group by all
having sum(gpu_ms) <> 0
