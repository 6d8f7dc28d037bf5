-- Uncorrected ECC errors of GPUs by hour, where there were any.
-- grain: gpu_uuid, hour_ms
-- errors: rise of the counters since the last sample of the hour before; two sources, or a counter since driver load
--  beside one of the GPU's life, count the same errors: the greatest of them
-- materialised: hourly, since causes of failures are asked with every page, and nearly no hour has one
with counters as (
    select *
    from intermediate.int_error_counters
    where
        hour_ms >= build_from_ms() - one_hour_ms()
        and hour_ms < build_to_ms()
        and metric in (select metric from reference.error_counters where kind = 'ecc_uncorrected')
        and highest > 0
),

-- of counters that were 0 in the hour before, too
read_before as (
    select source, gpu_uuid, gpu_instance, metric, hour_ms + one_hour_ms() as hour_ms, last_value
    from intermediate.int_error_counters
    where
        hour_ms >= build_from_ms() - one_hour_ms()
        and hour_ms < build_to_ms()
        and gpu_uuid in (select gpu_uuid from counters)
)

select
    counters.gpu_uuid,
    counters.hour_ms,
    max(counters.gain + coalesce(counter_increase(counters.first_value, read_before.last_value), 0))::bigint as errors
from counters
left join read_before using (source, gpu_uuid, gpu_instance, metric, hour_ms)
where counters.hour_ms >= build_from_ms()
group by counters.gpu_uuid, counters.hour_ms
having errors > 0
