-- The ledger rolled up: GPU-milliseconds by unit, hour, attempt, category and phase.
-- grain: gpu_uuid, gpu_instance, hour_ms, job_run_key, attempt_key, category, phase
-- gpu_ms: milliseconds of a whole GPU
-- materialised: hourly, since long windows are answered from it
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
from marts.ledger_segments
where
    hour_ms >= build_from_ms()
    and hour_ms < build_to_ms()
group by all
