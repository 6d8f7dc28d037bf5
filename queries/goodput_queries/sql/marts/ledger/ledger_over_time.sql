-- The ledger of the scope over time, in equal buckets (variable scope_bucket_ms; one hour unless set).
-- grain: bucket_at, category
-- access: team
-- bucket_at: start of the bucket, UTC
-- gpu_ms: milliseconds of a whole GPU
-- is_useful: goodput is the useful share, by this definition_version
with fine as (
    select segments.* exclude (gpu_ms)
    from intermediate.int_segment_bins as segments
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        scope_bucket_ms() < 3600000
        and segments.share_of is not null
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
),

buckets as (
    select category, bin_ms as bucket_ms, gpu_ms from ledger_of('fine')
    union all
    select category, bucket_start(hour_ms), gpu_ms
    from marts.ledger_scoped_by_node
    where scope_bucket_ms() >= 3600000
)

select
    from_ms(bucket_ms) as bucket_at,
    category,
    sum(gpu_ms)::bigint as gpu_ms,
    is_useful(category) as is_useful,
    definition_version() as definition_version
from buckets
group by bucket_ms, category
