-- The ledger of the scope over time, in equal buckets (variable scope_bucket_ms; one hour unless set).
-- grain: bucket_at, category
-- access: team
-- bucket_at: start of the bucket, UTC
-- gpu_ms: milliseconds of a whole GPU
-- is_useful: goodput is the useful share, by this definition_version
with alike as (
    -- the GPUs of a gang begin and end together: what is alike is cut into buckets once
    select
        segments.category,
        scope_start(segments.start_ms) as start_ms,
        scope_end(segments.end_ms) as end_ms,
        segments.share_lo,
        segments.share_hi,
        segments.share_of,
        count(*) as segments
    from marts.ledger_segments as segments
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        scope_bucket_ms() < 3600000
        and in_window(segments.start_ms, segments.end_ms)
        and in_scope(
            segments.cluster, segments.node, segments.gpu_uuid, segments.gpu_model,
            owners.team, owners.user_name, owners.run_key, owners.partition
        )
    group by all
),

fine as (
    select *, unnest(bucket_starts(start_ms, end_ms)) as bucket_ms from alike
),

buckets as (
    select
        category,
        bucket_ms,
        segments * share_ms(
            greatest(start_ms, bucket_ms),
            least(end_ms, bucket_ms + scope_bucket_ms()),
            share_lo, share_hi, share_of
        ) as gpu_ms
    from fine
    union all
    select
        category,
        bucket_start(hour_ms),
        gpu_ms
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
