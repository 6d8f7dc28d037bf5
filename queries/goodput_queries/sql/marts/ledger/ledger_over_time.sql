-- The ledger of the scope over time, in equal buckets (variable scope_bucket_ms; one hour unless set).
-- grain: bucket_at, category
-- evaluated: first
-- access: team
-- bucket_at: start of the bucket, UTC
-- is_useful: goodput is the useful share, by this definition_version
with segments as (
    select segments.*
    from intermediate.int_segments_in_window as segments
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        scope_bucket_ms() < one_hour_ms()
        and segments.share_of is not null
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
),

own as (select distinct attempt_key, gpu_uuid from intermediate.int_step_amounts where gpu_uuid is not null),

-- segments alike are cut once; GPUs of a gang have the same stretches, of the same amounts but for those with their own
alike as (
    select
        segments.category, segments.hour_ms, segments.start_ms, segments.end_ms,
        segments.share_lo, segments.share_hi, segments.share_of,
        case when segments.category = 'stepping' then segments.attempt_key end as attempt_key,
        null::varchar as phase,
        own.gpu_uuid,
        count(*) as gpus
    from segments
    left join own using (attempt_key, gpu_uuid)
    group by all
),

fine as not materialized (
    from segment_bins('alike')
),

buckets as (
    select category, bin_ms as bucket_ms, gpu_ms * gpus as gpu_ms from ledger_of('fine')
    union all
    select category, bucket_start(hour_ms), gpu_ms
    from marts.ledger_scoped_by_node
    where scope_bucket_ms() >= one_hour_ms()
)

select
    from_ms(bucket_ms) as bucket_at,
    category,
    sum(gpu_ms)::bigint as gpu_ms,
    is_useful(category) as is_useful,
    definition_version() as definition_version
from buckets
group by bucket_ms, category
