-- The segments of the ledger, and of time whose readings were dropped the archive's hours, cut at the window and into
-- bins of the scope's bucket_ms. Owners do not restrict it.
-- grain: none (parts of segments)
-- bin_ms: start of the bin, epoch ms; start_ms, end_ms: of the part in it
-- share_lo, share_hi, share_of: null in the archive, which has sums of hours
-- gpu_ms: milliseconds of a whole GPU
with pieces as (
    select *
    from intermediate.int_ledger_segments
    where hour_ms >= (select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'gpu_samples')
    union all by name
    select
        * exclude (gpu_ms),
        gpu_ms / 3600000 as share_ratio,
        hour_ms as start_ms,
        hour_ms + 3600000 as end_ms
    from state.ledger_archive
),

clipped as (
    select * exclude (gpu_ms) replace (scope_start(start_ms) as start_ms, scope_end(end_ms) as end_ms)
    from pieces
    where
        hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        and in_window(start_ms, end_ms)
        and in_place(cluster, node, gpu_uuid, gpu_model)
),

-- segments do not cross hours: in bins of whole hours each lies in one
cut as (
    select *, bucket_start(start_ms) as bin_ms from clipped where scope_bucket_ms() % 3600000 = 0
    union all
    select *, unnest(bucket_starts(start_ms, end_ms)) as bin_ms from clipped where scope_bucket_ms() % 3600000 <> 0
),

bins as (
    select * replace (
        greatest(start_ms, bin_ms) as start_ms, least(end_ms, bin_ms + scope_bucket_ms()) as end_ms
    )
    from cut
    where end_ms > start_ms
)

select
    * exclude (share_ratio),
    coalesce(
        share_ms(start_ms, end_ms, share_lo, share_hi, share_of), share_ratio * (end_ms - start_ms)
    ) as gpu_ms
from bins
