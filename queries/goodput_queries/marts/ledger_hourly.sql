-- The ledger rolled up: GPU-milliseconds by unit, hour, attempt, category and phase.
-- grain: gpu_uuid, gpu_instance, hour_ms, job_run_key, attempt_key, category, phase
-- gpu_ms: milliseconds of a whole GPU
-- materialised: hourly by GPU, since long windows are answered from it; of time whose readings were dropped it is kept
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
    and (not build_is_partial() or gpu_uuid in (select gpu_uuid from temp.reopened_gpus))
    -- older ones are in the archive
    and hour_ms >= (
        select coalesce(max(kept_from_ms), 0) from raw.kept_from where table_name = 'gpu_samples'
    )
group by all
union all
select *
from raw.ledger_archive
where
    hour_ms >= build_from_ms()
    and hour_ms < build_to_ms()
    and (not build_is_partial() or gpu_uuid in (select gpu_uuid from temp.reopened_gpus))
