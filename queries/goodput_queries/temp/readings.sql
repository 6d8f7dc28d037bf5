-- The readings of this pass in the order of their series, with as much before and after as a reading speaks of.
-- One sort of all readings; everything else asks its result.
-- grain: series, ts_ms
-- is_active: the GPU did something: by its profiling counters, else by its utilisation
-- previous_ms, was_active, next_ms: of the readings before and after in the series
with states as (
    select
        hash(source, gpu_uuid, gpu_instance) as series,
        ts_ms,
        coalesce(
            engine_active_ratio > threshold('idle_engine_ratio'),
            gpu_busy_ratio > threshold('idle_busy_ratio')
        ) as is_active
    from staging.stg_gpu_samples
    where
        ts >= from_ms(build_from_ms() - reading_margin_ms())
        and ts < from_ms(build_to_ms() + reading_margin_ms())
        and coalesce(engine_active_ratio, gpu_busy_ratio) is not null
        -- a reading whose profiling shares are incomplete is no reading (rule 10)
        and (engine_active_ratio is not null or not is_flagged)
)

select
    series,
    ts_ms,
    is_active,
    lag(ts_ms) over in_order as previous_ms,
    lag(is_active) over in_order as was_active,
    lead(ts_ms) over in_order as next_ms
from states
window in_order as (partition by series order by ts_ms)
