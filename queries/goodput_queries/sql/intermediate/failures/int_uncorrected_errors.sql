-- Uncorrected ECC errors of GPUs by hour, where there were any.
-- grain: gpu_uuid, hour_ms
-- errors: rise of the counters between the samples of the hour; two sources, or a counter since driver load beside one
--  of the GPU's life, count the same errors: the greatest of them
-- materialised: hourly, since causes of failures are asked with every page, and nearly no hour has one
select gpu_uuid, hour_ms, max(gain)::bigint as errors
from intermediate.int_error_counters
where
    hour_ms >= build_from_ms()
    and hour_ms < build_to_ms()
    and metric in (select metric from reference.error_counters where kind = 'ecc_uncorrected')
    and gain > 0
group by gpu_uuid, hour_ms
