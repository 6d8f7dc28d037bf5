-- The readings of this pass, each with the row stored before it. Without partition or order: rows stream in storage
-- order, which mostly is the order of time, so that nothing is sorted. Whatever the order is, is_begin marks rows whose
-- previous row is not the previous reading.
-- grain: series, ts_ms
-- materialised: inline; in 4 parts, since one core makes each: part_number() counts them from 0
-- before_ms, was_active: of the row before
-- is_begin: the row before is not an earlier reading of the series: a run of rows begins
with in_passing as (
    select
        * exclude (gpu_uuid),
        lag(series) over () as before_series,
        lag(ts_ms) over () as before_ms,
        lag(is_active) over () as was_active
    from temp.reading_states
    where
        place >= getvariable('build_reading_parts')[part_number() + 1]
        and place < getvariable('build_reading_parts')[part_number() + 2]
)

select
    *,
    coalesce(series <> before_series or ts_ms <= before_ms, true) as is_begin
from in_passing
