-- Error counters that rose on a GPU of a failed attempt of the scope, in the hours of its end and before.
-- grain: attempt_key, gpu_uuid, kind
-- evaluated: first
-- skip_if_empty: intermediate.int_failure_gpus
-- rise: errors, or seconds of thermal slowdown
-- first_ms, until_ms: the hours with a rise
-- other_hours: hours of the window with a rise outside of these
with rises as (
    select gpu_uuid, kind, hour_ms, rise, highest
    from intermediate.int_error_rises
    where kind in ('ecc_uncorrected', 'row_remap', 'remap_failed', 'nvlink', 'pcie', 'thermal')
        and (rise > 0 or (kind = 'remap_failed' and highest > 0))
),

hours as (
    select
        gpus.* exclude (trouble_from_ms, trouble_until_ms, end_ms, pci_bus_id),
        rises.kind,
        rises.hour_ms,
        rises.rise,
        rises.hour_ms + one_hour_ms() > gpus.trouble_from_ms - threshold('chain_before_ms')
        and rises.hour_ms <= gpus.end_ms as is_near
    from intermediate.int_failure_gpus as gpus
    inner join rises using (gpu_uuid)
)

select
    attempt_key,
    any_value(columns(['cluster', 'node', 'gpu_index'])),
    gpu_uuid,
    kind,
    sum(rise) filter (where is_near) as rise,
    min(hour_ms) filter (where is_near) as first_ms,
    max(hour_ms) filter (where is_near) + one_hour_ms() as until_ms,
    count(*) filter (where not is_near) as other_hours
from hours
group by attempt_key, gpu_uuid, kind
having count(*) filter (where is_near) > 0
