-- GPU activity in readings, with as much before and after this pass as a reading covers.
-- grain: series, ts_ms
-- materialised: inline, since it is the widest table of a build, and all that is asked of it is asked in passing
-- reader: hash of the source: numbers pass faster than names
select
    place,
    gpu_uuid,
    hash(source, gpu_uuid, gpu_instance) as series,
    hash(source) as reader,
    ts_ms,
    is_active_reading(
        engine_active_ratio, sm_active_ratio, tensor_active_ratio, dram_active_ratio, gpu_busy_ratio
    ) as is_active
from staging.stg_gpu_samples
where
    ts >= from_ms(build_from_ms() - reading_margin_ms())
    and ts < from_ms(build_to_ms() + reading_margin_ms())
    -- a reading of NVML whose profiling shares are incomplete is no reading (rule 10); other flags are of other values
    and not (
        is_flagged and source = 'nvml' and engine_active_ratio is null
        and coalesce(contains(flagged_metrics, 'gpm'), true)
    )
    and coalesce(
        engine_active_ratio, sm_active_ratio, tensor_active_ratio, dram_active_ratio, gpu_busy_ratio
    ) is not null
