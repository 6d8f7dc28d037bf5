-- GPUs whose error counters were read, by day (UTC) of the scope's window and kind of error, whether or not they rose.
-- grain: cluster, node, gpu_uuid, kind, day
-- evaluated: first
-- skip_if_empty: intermediate.int_error_counters
-- day: days since 1970
with read_days as (
    select
        counters.gpu_uuid,
        kinds.kind,
        counters.hour_ms // one_day_ms() as day,
        min(counters.hour_ms) as first_ms,
        max(counters.hour_ms) + one_hour_ms() as last_ms
    from intermediate.int_error_counters as counters
    inner join reference.error_counters as kinds using (metric)
    where
        counters.hour_ms > scope_from_ms() - one_hour_ms()
        and counters.hour_ms < scope_to_ms()
        and in_gpu(counters.gpu_uuid)
    group by counters.gpu_uuid, kinds.kind, counters.hour_ms // one_day_ms()
)

select distinct
    stays.cluster,
    stays.node,
    read_days.gpu_uuid,
    stays.gpu_model,
    read_days.kind,
    read_days.day
from read_days
inner join intermediate.int_gpu_inventory as stays
    on read_days.gpu_uuid = stays.gpu_uuid
    and read_days.last_ms > coalesce(stays.start_ms, 0)
    and read_days.first_ms < coalesce(stays.end_ms, forever_ms())
