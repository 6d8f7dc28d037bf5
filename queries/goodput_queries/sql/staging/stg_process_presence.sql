-- When processes held a context on GPUs, in blocks of ten minutes, until schedulers cover all nodes.
-- grain: gpu_uuid, pid, block
-- pid: 0 where the source only counts processes; -1: the list itself, also where it is empty
-- block: ten minutes since the epoch
-- first_ms, last_ms: the first and the last reading of the process
-- materialised: merged, since each build reads the processes of new loads alone
-- skip_if_empty: staging.stg_unscheduled
with untils as (
    select coalesce(max(coalesce(until_ms, 9223372036854770000)), 0) as until_ms from staging.stg_unscheduled
),

processes as (
    select
        gpu_uuid,
        unnest(list_append(coalesce(pids, case when processes > 0 then [0::bigint] else [] end), -1)) as pid,
        to_ms(ts) as ts_ms
    from raw.gpu_processes
    where
        coalesce(load_sequence, 0) > merged_sequence()
        and to_ms(ts) < (select until_ms from untils)
)

select gpu_uuid, pid, ts_ms // ten_minutes_ms() as block, min(ts_ms) as first_ms, max(ts_ms) as last_ms
from processes
group by all
