-- Values of GPU metrics that were rejected (blank, out of range), by hour.
-- grain: source, gpu_uuid, gpu_instance, metric, hour_ms
-- metric: 'gpm': a share of NVML's profiling was missing, so that none counts
-- blank: readings of the hour without the value
-- materialised: hourly, since it needs a pass over all readings and few have one
with flagged as (
    select
        source,
        gpu_uuid,
        gpu_instance,
        unnest(string_split(flagged_metrics, ',')) as metric,
        ts_ms // one_hour_ms() * one_hour_ms() as hour_ms
    from staging.stg_gpu_samples
    where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms()) and flagged_metrics is not null
)

select source, gpu_uuid, gpu_instance, metric, hour_ms, count(*) as blank
from flagged
group by all
