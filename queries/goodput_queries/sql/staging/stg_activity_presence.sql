-- When GPUs were active, in blocks of ten minutes, until schedulers cover all nodes.
-- grain: gpu_uuid, block
-- block: ten minutes since the epoch
-- first_ms, last_ms: the first and the last reading that shows activity
-- materialised: merged, since each build reads the readings of new loads alone
-- skip_if_empty: staging.stg_unscheduled
with untils as (
    select coalesce(max(coalesce(until_ms, 9223372036854770)), 0) as until_ms from staging.stg_unscheduled
)

select gpu_uuid, to_ms(ts) // ten_minutes_ms() as block, min(to_ms(ts)) as first_ms, max(to_ms(ts)) as last_ms
from raw.gpu_samples
where
    coalesce(load_sequence, 0) > merged_sequence()
    and ts < from_ms((select until_ms from untils))
    and is_active_reading(engine_active_ratio, sm_active_ratio, tensor_active_ratio, dram_active_ratio, gpu_busy_ratio)
    and not coalesce(
        is_flagged and source = 'nvml' and engine_active_ratio is null
        and coalesce(contains(flagged_metrics, 'gpm'), true), false
    )
group by gpu_uuid, block
