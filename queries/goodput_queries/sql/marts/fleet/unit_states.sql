-- State of each GPU or MIG instance at the end of the scope's window, or of the evidence where that ends before.
-- Owners do not restrict it.
-- grain: gpu_uuid, gpu_instance
-- at_ms: that time, epoch ms
-- share_ratio: share of the GPU
-- category, "group": of the ledger in the last segment; null: the ledger does not reach that time
-- job_run_key: null where it is not allocated
with ends as (
    select cluster, least(as_of_ms, coalesce(getvariable('scope_to_ms')::bigint, as_of_ms)) as at_ms
    from intermediate.int_clusters
),

units as (
    select units.*, ends.at_ms, (ends.at_ms - 1) // 3600000 * 3600000 as hour_ms
    from intermediate.int_gpu_units as units
    inner join ends using (cluster)
    where
        units.start_ms < ends.at_ms
        and coalesce(units.end_ms, 9223372036854775807) >= ends.at_ms
        and in_place(units.cluster, units.node, units.gpu_uuid, units.gpu_model)
),

-- of hours whose readings were dropped the archive has sums: the category with most time
last_ones as (
    select pieces.gpu_uuid, pieces.gpu_instance, pieces.category, pieces.job_run_key
    from marts.ledger_pieces as pieces
    inner join units using (gpu_uuid, gpu_instance, hour_ms)
    where pieces.start_ms < units.at_ms and pieces.end_ms >= units.at_ms
    qualify row_number() over (
        partition by pieces.gpu_uuid, pieces.gpu_instance
        order by pieces.start_ms desc, pieces.gpu_ms desc, pieces.category
    ) = 1
)

select
    units.cluster,
    units.node,
    units.gpu_uuid,
    units.gpu_instance,
    units.gpu_index,
    units.gpu_model,
    units.mig_profile,
    (units.share_hi - units.share_lo) / units.share_of as share_ratio,
    units.at_ms,
    last_ones.category,
    categories."group",
    last_ones.job_run_key
from units
left join last_ones using (gpu_uuid, gpu_instance)
left join reference.gpu_second_categories as categories using (category)
