-- What the hosts of each run read from their disks for it, by ten minutes in the scope's window, and what it says it needs.
-- Hosts that several job runs share at a time are left out, since disks do not say for whom they read; reads of network
-- file systems are not reads of disks.
-- grain: run_key
-- evaluated: first
-- access: team
-- gpus, nodes: most at a time; gpu_ms: allocated time of these ten minutes
-- read_bytes_per_gpu_s, most_read_bytes_per_gpu_s: mean, and of the ten minutes with the most
-- mean_read_bytes: mean size of a read; null: the number of reads is not known
-- dirty_bytes: most that a host had to write to its disks; page_cache_bytes: most that a host kept of files
-- memory_available_bytes: least of a host
-- cpu_busy_ratio: mean of the hosts; memory_used_ratio: most of one
-- port_bytes_per_s: mean of a host by the hour, received or sent, whichever is more; line_rate_ratio: of the busiest port; null: not read
-- need_bytes_per_gpu_s: `input_bytes_per_gpu_s` of the job; null: it does not say
with nodes as (
    -- of the scope's runs: few, where it is one run
    select distinct holds.cluster, holds.node
    from intermediate.int_holds as holds
    inner join intermediate.int_holds_in_scope as mine using (job_run_key, gpu_uuid)
),

holds as (
    select
        holds.cluster, holds.node, holds.gpu_uuid, holds.job_run_key, holds.start_ms,
        least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms) as end_ms
    from intermediate.int_holds as holds
    inner join nodes using (cluster, node)
    inner join intermediate.int_clusters as clusters using (cluster)
    where holds.gpu_instance = '' and in_window(holds.start_ms, holds.end_ms)
),

-- ten minutes of whole GPUs, as in intermediate.int_held_bins
bins as (
    select cluster, node, read.start_ms, any_value(job_run_key) as job_run_key, count(distinct gpu_uuid) as gpus
    from holds
    inner join intermediate.int_gpu_metrics as read using (gpu_uuid)
    where
        read.gpu_instance = ''
        and read.start_ms >= greatest(holds.start_ms, scope_from_ms())
        and read.start_ms <= least(holds.end_ms, scope_to_ms()) - ten_minutes_ms()
    group by holds.cluster, holds.node, read.start_ms
    having count(distinct holds.job_run_key) = 1
),

reads as (
    select
        owners.run_key,
        sum(bins.gpus) as gpus,
        count(*) as nodes,
        sum(hosts.read_bytes_per_s) as bytes_per_s,
        sum(hosts.reads_per_s) as reads_per_s,
        max(hosts.dirty_bytes) as dirty_bytes,
        max(hosts.page_cache_bytes) as page_cache_bytes,
        min(hosts.memory_available_bytes) as memory_available_bytes,
        avg(hosts.cpu_busy_ratio) as cpu_busy_ratio,
        max(hosts.memory_used_ratio) as memory_used_ratio
    from bins
    inner join intermediate.int_host_bins as hosts using (cluster, node, start_ms)
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        hosts.read_bytes_per_s is not null
        and of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
    group by owners.run_key, bins.start_ms
),

ports as (
    select run_key, avg(bytes_per_s) as bytes_per_s, max(line_rate_ratio) as line_rate_ratio
    from (
        select
            owners.run_key,
            sum(links.line_rate_ratio * links.speed_bytes_per_s) as bytes_per_s,
            max(links.line_rate_ratio) as line_rate_ratio
        from (select distinct cluster, node, start_ms // one_hour_ms() * one_hour_ms() as hour_ms, job_run_key from bins) as hours
        inner join intermediate.int_link_hours as links using (cluster, node, hour_ms)
        inner join intermediate.int_job_run_owners as owners using (job_run_key)
        where of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
        group by owners.run_key, links.source, hours.cluster, hours.node, hours.hour_ms
    )
    group by run_key
),

needs as (
    select run_key, try_cast(value as double) as bytes_per_s
    from marts.run_attributes
    where attribute = 'input_bytes_per_gpu_s'
)

select
    reads.run_key,
    max(reads.gpus)::integer as gpus,
    max(reads.nodes)::integer as nodes,
    (sum(reads.gpus) * ten_minutes_ms())::bigint as gpu_ms,
    sum(reads.bytes_per_s) / sum(reads.gpus) as read_bytes_per_gpu_s,
    max(reads.bytes_per_s / reads.gpus) as most_read_bytes_per_gpu_s,
    sum(reads.bytes_per_s) filter (where reads.reads_per_s > 0) / sum(reads.reads_per_s) as mean_read_bytes,
    max(reads.dirty_bytes) as dirty_bytes,
    max(reads.page_cache_bytes) as page_cache_bytes,
    min(reads.memory_available_bytes) as memory_available_bytes,
    avg(reads.cpu_busy_ratio) as cpu_busy_ratio,
    max(reads.memory_used_ratio) as memory_used_ratio,
    any_value(ports.bytes_per_s) as port_bytes_per_s,
    any_value(ports.line_rate_ratio) as line_rate_ratio,
    any_value(needs.bytes_per_s) as need_bytes_per_gpu_s
from reads
left join needs using (run_key)
left join ports using (run_key)
group by reads.run_key
