-- The ledger of the scope's place in hours that the window cuts, from the segments: stretches of steps are counted step by
-- step where the window cuts ten minutes. Owners do not restrict it.
-- grain: none (parts of hours)
-- start_ms, end_ms: first and last of it in the hour; from_ms, until_ms: of the segment or stretch that it is in
-- is_amount: it is not the whole of [from_ms, until_ms), but gpu_ms of it
-- gpu_ms: milliseconds of a whole GPU
with window_ as (
    select
        scope_from_ms() as from_ms,
        scope_to_ms() as to_ms
),

clipped as not materialized (
    select
        segments.* exclude (gpu_ms) replace (
            greatest(segments.start_ms, window_.from_ms) as start_ms,
            least(segments.end_ms, window_.to_ms) as end_ms
        )
    from intermediate.int_ledger_segments as segments
    cross join window_
    where
        (
            hour_ms = scope_from_ms() // one_hour_ms() * one_hour_ms()
            or hour_ms = coalesce(chosen_to_ms(), 0) // one_hour_ms() * one_hour_ms()
        )
        and not (hour_ms >= window_.from_ms and hour_ms <= window_.to_ms - one_hour_ms())
        and in_place(segments.cluster, segments.node, segments.gpu_uuid, segments.gpu_model)
        and segments.start_ms < window_.to_ms
        and segments.end_ms > window_.from_ms
)

select
    cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
    category, phase, hour_ms, first_ms as start_ms, last_ms as end_ms, gpu_ms,
    start_ms as from_ms, end_ms as until_ms, is_amount
from ledger_of('clipped')
