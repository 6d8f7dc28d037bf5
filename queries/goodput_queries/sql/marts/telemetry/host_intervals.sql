-- What the scope's hosts did between one reading and the next, at most an hour. Null: not measured, or a counter fell.
-- grain: cluster, node, end_ms
-- cpu_busy_ratio, cpu_iowait_ratio, cpu_steal_ratio: share of the time of all cores; steal is part of busy
-- memory_used_bytes: not available to programs, at the end; memory_total_bytes
-- swap_used_bytes: null where there is no swap
-- disk_read_bytes_per_s, disk_write_bytes_per_s: sum of the disks
-- tcp_retransmit_ratio: of the segments sent
with readings as (
    select *, count(*) over (partition by cluster, node, source) as in_all
    from staging.stg_host_samples
    where
        ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts < scope_to_at()
        and in_place(cluster, node, null, null)
),

changes as (
    select
        cluster,
        node,
        lag(ts_ms) over hosts as start_ms,
        ts_ms as end_ms,
        sum_increase(cpu_total_s, lag(cpu_total_s) over hosts) as total_s,
        sum_increase(cpu_busy_s, lag(cpu_busy_s) over hosts) as busy_s,
        sum_increase(cpu_iowait_s, lag(cpu_iowait_s) over hosts) as iowait_s,
        sum_increase(cpu_steal_s, lag(cpu_steal_s) over hosts) as steal_s,
        memory_total_bytes - memory_available_bytes as memory_used_bytes,
        memory_total_bytes,
        case when swap_total_bytes > 0 then swap_total_bytes - swap_free_bytes end as swap_used_bytes,
        sum_increase(disk_read_bytes, lag(disk_read_bytes) over hosts) as read_bytes,
        sum_increase(disk_write_bytes, lag(disk_write_bytes) over hosts) as write_bytes,
        sum_increase(tcp_sent_segments, lag(tcp_sent_segments) over hosts) as sent,
        sum_increase(tcp_retransmitted_segments, lag(tcp_retransmitted_segments) over hosts) as again
    from (
        select *
        from readings
        qualify dense_rank() over (partition by cluster, node order by in_all desc, source) = 1
    )
    window hosts as (partition by cluster, node order by ts_ms)
)

select
    cluster,
    node,
    start_ms,
    end_ms,
    share_of(busy_s, total_s) as cpu_busy_ratio,
    share_of(iowait_s, total_s) as cpu_iowait_ratio,
    share_of(steal_s, total_s) as cpu_steal_ratio,
    memory_used_bytes,
    memory_total_bytes,
    swap_used_bytes,
    1000 * read_bytes / (end_ms - start_ms) as disk_read_bytes_per_s,
    1000 * write_bytes / (end_ms - start_ms) as disk_write_bytes_per_s,
    share_of(again, sent) as tcp_retransmit_ratio
from changes
where end_ms > start_ms and end_ms - start_ms <= one_hour_ms()
