-- The ledger of each GPU or instance cut into bins of the scope's bucket_ms. Owners do not restrict it.
-- grain: none (parts of segments)
-- start_ms: start of the bin, epoch ms
-- piece_ms: time of the piece inside the bin; gpu_ms: the same as milliseconds of a whole GPU
with pieces as (
    select
        cluster,
        node,
        gpu_uuid,
        gpu_instance,
        job_run_key,
        category,
        gpu_ms / (end_ms - start_ms) as share_ratio,
        scope_start(start_ms) as start_ms,
        scope_end(end_ms) as end_ms
    from marts.ledger_pieces
    where
        hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        and in_window(start_ms, end_ms)
        and in_place(cluster, node, gpu_uuid, gpu_model)
),

-- pieces do not cross hours: in bins of whole hours each lies in one
cut as (
    select *, bucket_start(start_ms) as bin_ms from pieces where end_ms > start_ms and scope_bucket_ms() % 3600000 = 0
    union all
    select *, unnest(bucket_starts(start_ms, end_ms)) as bin_ms
    from pieces
    where end_ms > start_ms and scope_bucket_ms() % 3600000 <> 0
)

select
    cluster,
    node,
    gpu_uuid,
    gpu_instance,
    job_run_key,
    category,
    bin_ms as start_ms,
    ms_in_bucket(start_ms, end_ms, bin_ms) as piece_ms,
    share_ratio * ms_in_bucket(start_ms, end_ms, bin_ms) as gpu_ms
from cut
