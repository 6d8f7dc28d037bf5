-- The ledger of each node in bins of the scope's bucket_ms, for charts. Owners do not restrict it.
-- grain: cluster, node, start_ms, category
-- start_ms: start of the bin, epoch ms
-- gpu_ms: milliseconds of a whole GPU in that category in the bin
-- in bins of whole hours, hours that the window does not cut come from the roll-up by node
with hours as (
    select cluster, node, bucket_start(hour_ms) as bin_ms, category, gpu_ms
    from marts.ledger_hourly_by_node
    where
        scope_bucket_ms() % 3600000 = 0
        and getvariable('scope_gpu_uuid') is null
        and is_whole_hour(hour_ms)
        and in_place(cluster, node, null, gpu_model)
),

-- most GPUs of a job on a node change their category together: that is summed up before it is cut into bins
pieces as (
    select
        cluster,
        node,
        category,
        start_ms as whole_start_ms,
        end_ms as whole_end_ms,
        scope_start(start_ms) as start_ms,
        scope_end(end_ms) as end_ms,
        sum(gpu_ms) as gpu_ms
    from marts.ledger_pieces
    where
        hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        and (
            scope_bucket_ms() % 3600000 <> 0
            or getvariable('scope_gpu_uuid') is not null
            or not is_whole_hour(hour_ms)
        )
        and in_window(start_ms, end_ms)
        and in_place(cluster, node, gpu_uuid, gpu_model)
    group by cluster, node, category, whole_start_ms, whole_end_ms
),

cut as (
    select *, unnest(bucket_starts(start_ms, end_ms)) as bin_ms from pieces where end_ms > start_ms
),

bins as (
    from hours
    union all
    select
        cluster,
        node,
        bin_ms,
        category,
        gpu_ms / (whole_end_ms - whole_start_ms) * ms_in_bucket(start_ms, end_ms, bin_ms) as gpu_ms
    from cut
)

select cluster, node, bin_ms as start_ms, category, sum(gpu_ms) as gpu_ms
from bins
group by cluster, node, bin_ms, category
