-- Hosts by ten minutes: counters of CPU and disks, memory in use.
-- grain: source, cluster, node, start_ms
-- start_ms: start of the ten minutes, epoch ms
-- readings: number of readings; first_ms, last_ms: of them
-- cpu_total_s, cpu_busy_s, cpu_iowait_s, disk_busy_s, disk_read_bytes, disk_reads: counters: first, last, gain (increase inside the ten minutes) and n
-- memory_used_ratio: highest share of the memory that was not available to programs
-- swap_used_bytes: at the end; null where there is no swap; load1: mean
-- dirty_bytes: most that waited to be written; page_cache_bytes: files in memory, at the end;
--  memory_available_bytes: least
-- materialised: hourly, since rules look at all hosts of the fleet
-- skip_if_empty: raw.node_samples
select
    source,
    cluster,
    node,
    ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
    ts_ms // ten_minutes_ms() * ten_minutes_ms() as start_ms,
    count(*)::integer as readings,
    min(ts_ms) as first_ms,
    max(ts_ms) as last_ms,
    rolled_up_counter(columns([
        'cpu_total_s', 'cpu_busy_s', 'cpu_iowait_s', 'disk_busy_s', 'disk_read_bytes', 'disk_reads'
    ]), ts),
    max(dirty_bytes) as dirty_bytes,
    arg_max(page_cache_bytes, ts) as page_cache_bytes,
    min(memory_available_bytes) as memory_available_bytes,
    max(1 - memory_available_bytes / nullif(memory_total_bytes, 0)) as memory_used_ratio,
    arg_max(case when swap_total_bytes > 0 then swap_total_bytes - swap_free_bytes end, ts) as swap_used_bytes,
    avg(load1) as load1
from staging.stg_host_samples
where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
group by source, cluster, node, ts_ms // one_hour_ms(), ts_ms // ten_minutes_ms()
