-- Hosts in the scope's window by ten minutes; where a run is chosen, those that it had. Where two sources read a host,
-- those of the source with more readings.
-- grain: cluster, node, start_ms
-- start_ms: start of the ten minutes, epoch ms
-- cpu_busy_ratio, cpu_iowait_ratio: share of the time of all cores; busy_disks: mean number of disks with an operation in
--  progress; from the last reading of the ten minutes before. Null: not measured, or a counter fell
-- memory_used_ratio: highest share of the memory that was not available to programs
-- swap_used_bytes: at the end; null where there is no swap; load1: mean
-- read_bytes_per_s, reads_per_s: sum of the disks; dirty_bytes: most that waited to be written; page_cache_bytes: at the end;
--  memory_available_bytes: least
with readings as (
    select *
    from intermediate.int_host_metrics
    where
        -- and the ten minutes before
        hour_ms > scope_from_ms() - 7200000
        and start_ms >= scope_from_ms() - 1200000
        and start_ms < scope_to_ms()
        and in_place(cluster, node, null, null)
        and (
            chosen_run() is null
            or node in (
                select holds.node
                from intermediate.int_holds as holds
                inner join intermediate.int_job_run_owners as owners using (job_run_key)
                where owners.run_key = chosen_run()
            )
        )
),

-- numbered, since names take several times as long to sort by
hosts as materialized (
    select cluster, node, source, (row_number() over ())::integer as host
    from readings
    group by cluster, node, source
    qualify row_number() over (partition by cluster, node order by sum(readings) desc, source) = 1
),

chosen as (
    select hosts.host, readings.* exclude (cluster, node, source)
    from readings
    inner join hosts using (cluster, node, source)
),

followed as (
    select
        *,
        -- a host that was silent for longer may have done anything meanwhile
        coalesce(start_ms - lag(start_ms) over of_host = ten_minutes_ms(), false) as follows,
        lag(last_ms) over of_host as before_ms,
        lag(cpu_total_s.last) over of_host as total_before_s,
        lag(cpu_busy_s.last) over of_host as busy_before_s,
        lag(cpu_iowait_s.last) over of_host as iowait_before_s,
        lag(disk_busy_s.last) over of_host as disk_busy_before_s,
        lag(disk_read_bytes.last) over of_host as read_before_bytes,
        lag(disk_reads.last) over of_host as reads_before
    from chosen
    window of_host as (partition by host order by start_ms)
),

changes as (
    select
        *,
        gain_since(cpu_total_s, case when follows then total_before_s end) as total_s,
        gain_since(cpu_busy_s, case when follows then busy_before_s end) as busy_s,
        gain_since(cpu_iowait_s, case when follows then iowait_before_s end) as iowait_s,
        gain_since(disk_busy_s, case when follows then disk_busy_before_s end) as disks_s,
        gain_since(disk_read_bytes, case when follows then read_before_bytes end) as read_bytes,
        gain_since(disk_reads, case when follows then reads_before end) as reads,
        last_ms - case when follows then before_ms else first_ms end as span_ms
    from followed
)

select
    cluster,
    node,
    start_ms,
    share_of(busy_s, total_s) as cpu_busy_ratio,
    share_of(iowait_s, total_s) as cpu_iowait_ratio,
    1000 * disks_s / nullif(span_ms, 0) as busy_disks,
    memory_used_ratio,
    swap_used_bytes,
    load1,
    1000 * read_bytes / nullif(span_ms, 0) as read_bytes_per_s,
    1000 * reads / nullif(span_ms, 0) as reads_per_s,
    dirty_bytes,
    page_cache_bytes,
    memory_available_bytes
from changes
inner join hosts using (host)
