-- The ledger in pieces that lie in one hour each: its segments; of time whose readings were dropped, the archive's
-- hours. What sums over whole hours asks it.
-- grain: none (segments of an hour)
-- start_ms, end_ms: of the segment; in the archive those of its hour
-- gpu_ms: milliseconds of a whole GPU
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
    start_ms,
    end_ms,
    gpu_ms
from marts.ledger_segments
-- older ones are in the archive
where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
union all by name
select *, hour_ms as start_ms, hour_ms + 3600000 as end_ms
from state.ledger_archive
