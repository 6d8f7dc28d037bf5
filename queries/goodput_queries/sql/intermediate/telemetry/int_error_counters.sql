-- Error counters and flags of GPUs by hour. What an hour gained on the one before is in intermediate.int_error_rises.
-- grain: source, gpu_uuid, gpu_instance, metric, hour_ms
-- first_value, last_value: of the first and last sample of the hour; highest: of all
-- gain: sum of the increases from sample to sample of the hour; a value lower than before is a reset, and counts from 0
-- materialised: hourly, since it needs a pass over all samples and outlives them
with samples as (
    select
        * exclude (ts_ms, value),
        ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        value
    from staging.stg_gpu_samples_other
    where
        ts >= from_ms(build_from_ms())
        and ts < from_ms(build_to_ms())
        and metric in (select metric from reference.error_counters)
        and value is not null
),

steps as (
    select
        *,
        lag(value) over (
            partition by source, gpu_uuid, gpu_instance, metric, hour_ms order by ts
        ) as value_before
    from samples
)

select
    source,
    gpu_uuid,
    gpu_instance,
    metric,
    hour_ms,
    arg_min(value, ts) as first_value,
    arg_max(value, ts) as last_value,
    max(value) as highest,
    coalesce(sum(counter_increase(value, value_before)), 0) as gain
from steps
group by source, gpu_uuid, gpu_instance, metric, hour_ms
