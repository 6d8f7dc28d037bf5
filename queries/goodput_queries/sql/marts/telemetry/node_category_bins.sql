-- The ledger of each node in bins of the scope's bucket_ms, for charts. Owners do not restrict it.
-- grain: cluster, node, start_ms, category
-- start_ms: start of the bin, epoch ms
-- gpu_ms: milliseconds of a whole GPU in that category in the bin
-- in bins of whole hours, hours that the window does not cut come from the roll-up by node
with hours as (
    select cluster, node, bucket_start(hour_ms) as bin_ms, category, gpu_ms
    from marts.ledger_hourly_by_node
    where
        scope_bucket_ms() % one_hour_ms() = 0
        and chosen_gpu_uuid() is null
        and is_whole_hour(hour_ms)
        and in_place(cluster, node, null, gpu_model)
),

segments as (
    select * exclude (gpu_ms)
    from intermediate.int_segment_bins
    where
        share_of is not null
        and (
            scope_bucket_ms() % one_hour_ms() <> 0
            or chosen_gpu_uuid() is not null
            or not is_whole_hour(hour_ms)
        )
),

bins as (
    from hours
    union all
    select cluster, node, bin_ms, category, gpu_ms from ledger_of('segments')
    union all
    select cluster, node, bin_ms, category, gpu_ms
    from intermediate.int_segment_bins
    where
        share_of is null
        and (
            scope_bucket_ms() % one_hour_ms() <> 0
            or chosen_gpu_uuid() is not null
            or not is_whole_hour(hour_ms)
        )
)

select cluster, node, bin_ms as start_ms, category, sum(gpu_ms) as gpu_ms
from bins
group by cluster, node, bin_ms, category
