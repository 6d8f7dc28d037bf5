-- The ledger: every GPU (or part of one) at every moment in exactly one category, run-length encoded and
-- cut at hours. Its gpu_ms add up to the capacity, to the millisecond.
-- grain: gpu_uuid, gpu_instance, start_ms
-- hour_ms: start of the hour the segment lies in, epoch ms
-- gpu_ms: milliseconds of a whole GPU; a part of a GPU counts with its share
-- share_lo, share_hi, share_of: the part of the GPU, for cutting a segment again
-- category: reference.gpu_second_categories
-- phase: detail within the category; what it would have been, where the whole attempt failed
-- job_run_key, attempt_key: null where nobody held the GPU, or the job said nothing
-- materialised: hourly, since every page and export reads it and closed hours do not change
with units as (select * from intermediate.int_gpu_units),

classified as (
    select *
    from intermediate.int_gpu_intervals_classified
    where
        end_ms > coalesce(getvariable('build_from_ms')::bigint, 0)
        and start_ms < coalesce(getvariable('build_to_ms')::bigint, 0)
),

clipped as (
    select
        * exclude (start_ms, end_ms),
        greatest(start_ms, coalesce(getvariable('build_from_ms')::bigint, 0)) as start_ms,
        least(end_ms, coalesce(getvariable('build_to_ms')::bigint, 0)) as end_ms
    from classified
),

by_hour as (
    select
        * exclude (start_ms, end_ms, hour),
        hour * 3600000 as hour_ms,
        greatest(start_ms, hour * 3600000) as start_ms,
        least(end_ms, (hour + 1) * 3600000) as end_ms
    from (
        select *, unnest(range(start_ms // 3600000, (end_ms - 1) // 3600000 + 1)) as hour
        from clipped
    )
),

-- a GPU that moved or was cut anew within the hour is two segments
placed as (
    select by_hour.*, units.start_ms as unit_start_ms
    from by_hour
    inner join units
        on by_hour.gpu_uuid = units.gpu_uuid
        and by_hour.gpu_instance = units.gpu_instance
        and by_hour.start_ms >= units.start_ms
        and by_hour.start_ms < coalesce(units.end_ms, 9223372036854775807)
),

marked as (
    select
        *,
        (job_run_key, attempt_key, category, phase, unit_start_ms, start_ms) is distinct from lag(
            (job_run_key, attempt_key, category, phase, unit_start_ms, end_ms)
        ) over (partition by gpu_uuid, gpu_instance, hour_ms order by start_ms) as is_new
    from placed
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by gpu_uuid, gpu_instance, hour_ms order by start_ms
            rows between unbounded preceding and current row
        ) as segment
    from marked
),

segments as (
    select
        gpu_uuid,
        gpu_instance,
        hour_ms,
        any_value(job_run_key) as job_run_key,
        any_value(attempt_key) as attempt_key,
        any_value(category) as category,
        any_value(phase) as phase,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms
    from numbered
    group by gpu_uuid, gpu_instance, hour_ms, segment
)

select
    units.cluster,
    units.node,
    segments.gpu_uuid,
    segments.gpu_instance,
    units.gpu_model,
    units.mig_profile,
    segments.job_run_key,
    segments.attempt_key,
    segments.category,
    segments.phase,
    segments.hour_ms,
    segments.start_ms,
    segments.end_ms,
    units.share_lo,
    units.share_hi,
    units.share_of,
    share_ms(segments.start_ms, segments.end_ms, units.share_lo, units.share_hi, units.share_of) as gpu_ms
from segments
inner join units
    on segments.gpu_uuid = units.gpu_uuid
    and segments.gpu_instance = units.gpu_instance
    and segments.start_ms >= units.start_ms
    and segments.start_ms < coalesce(units.end_ms, 9223372036854775807)
