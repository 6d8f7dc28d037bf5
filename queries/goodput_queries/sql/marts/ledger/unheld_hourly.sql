-- Unallocated time of each GPU or instance by hour: the energy of that time has no owner.
-- grain: gpu_uuid, gpu_instance, hour_ms
-- free_ms, inferred_ms, away_ms: milliseconds of a whole GPU, free, active with no known owner, not available
-- materialised: hourly of the ledger, since what a job did with its GPUs changes the ledger of old hours, but not this
-- change_tracking: hour_ms
-- of segments, since a stretch of steps is allocated, whatever its categories
with ledger as (
    select cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, hour_ms, category, gpu_ms
    from intermediate.int_ledger_segments
    where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
    union all
    select cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, hour_ms, category, gpu_ms
    from state.ledger_archive
)

select
    min(ledger.cluster) as cluster,
    min(ledger.node) as node,
    ledger.gpu_uuid,
    ledger.gpu_instance,
    min(ledger.gpu_model) as gpu_model,
    min(ledger.mig_profile) as mig_profile,
    ledger.hour_ms,
    coalesce(sum(ledger.gpu_ms) filter (where categories.group = 'free'), 0)::bigint as free_ms,
    coalesce(sum(ledger.gpu_ms) filter (where categories.group = 'held' and ledger.job_run_key is null), 0)::bigint
        as inferred_ms,
    coalesce(sum(ledger.gpu_ms) filter (where categories.group = 'not_available'), 0)::bigint as away_ms
from ledger
left join reference.gpu_second_categories as categories using (category)
where
    ledger.hour_ms >= build_from_ms()
    and ledger.hour_ms < build_to_ms()
group by ledger.gpu_uuid, ledger.gpu_instance, ledger.hour_ms
