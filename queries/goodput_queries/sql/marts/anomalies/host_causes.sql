-- What on its hosts slows a job run down or endangers it, by ten minutes of each node: of rules about use, those in which
-- the GPUs of the node had low use (threshold starved_use_ratio) outside start-up.
-- grain: rule, job_run_key, node, gpu_uuid
-- access: team
-- skip_if_empty: intermediate.int_holds
-- rule: io_starved, cpu_starved (GPUs wait for disks, for cores); small_reads (for disks that read little at a time); slow_feed
--  (they get less input than their job says it needs); unexplained_wait (cores, disks and network are idle as well);
--  cpu_oversubscribed (more runnable programs than cores; half as many do where several jobs have GPUs of the node),
--  gpu_oversubscribed (several processes on each of its GPUs), swap_in_use (swap grew while it ran), host_memory_full,
--  gpu_memory_full, memory_oversubscribed (it is full, and pages move to the host and back), driver_skew (several driver versions in one job run), ecc_off
-- node, gpu_uuid: null for the whole job run, or the whole node
-- start_at, end_at: first and last ten minutes of it
-- gpu_ms: unused time of the node's GPUs meanwhile (io_starved, cpu_starved, small_reads, slow_feed); else null, since nobody knows what it cost
-- cost: of gpu_ms; null without a price
-- score: value / limit; of cpu_oversubscribed that of a node with one job
-- confidence: Likely; Not confirmed where a healthy job may look the same (several processes, a full GPU memory); Confirmed for
--  what the inventory reports
with single_gpu_jobs as (
    select job_run_key from intermediate.int_holds group by job_run_key having count(distinct gpu_uuid) = 1
),

bins as materialized (
    select
        cluster,
        node,
        job_run_key,
        start_ms,
        count(*) as gpus,
        avg(use_ratio) as use_ratio,
        avg(coalesce(gpu_busy_ratio, use_ratio)) as busy_ratio,
        count(*) over (partition by cluster, node, start_ms) as jobs
    from intermediate.int_held_bins
    where not is_starting
    group by cluster, node, job_run_key, start_ms
),

cores as (
    select cluster, node, max(cpus) as cpus from staging.stg_nodes where cpus > 0 group by cluster, node
),

hosts as materialized (
    select
        bins.*,
        hosts.* exclude (cluster, node, start_ms),
        cores.cpus
    from bins
    inner join intermediate.int_host_bins as hosts using (cluster, node, start_ms)
    left join cores on bins.node = cores.node and coalesce(cores.cluster, bins.cluster) = bins.cluster
),

-- where no kernel runs and no resource of the host is short; an engine waits for requests
waiting as (
    select cluster, node, job_run_key, start_ms, gpus, busy_ratio
    from hosts
    where
        busy_ratio < threshold('starved_use_ratio')
        and busy_ratio >= threshold('idle_share_ratio')
        and cpu_busy_ratio < threshold('unexplained_cpu_ratio')
        and busy_disks < threshold('unexplained_disks')
        and job_run_key not in (select job_run_key from intermediate.int_serving_gpus where job_run_key is not null)
),

needs as (
    select lives.job_run_key, arg_max(try_cast(attributes.value as double), attributes.at_ms) as need_bytes_per_s
    from staging.stg_run_attributes as attributes
    inner join intermediate.int_report_lives as lives
        on attributes.cluster = lives.cluster and attributes.run_id = lives.run_id
        and attributes.attempt is not distinct from lives.attempt
        and attributes.at_ms >= lives.from_ms and attributes.at_ms < lives.until_ms
    where attributes.attribute = 'input_bytes_per_gpu_s'
    group by lives.job_run_key
),

needy as (
    select hosts.*, needs.need_bytes_per_s
    from hosts
    inner join needs using (job_run_key)
    where hosts.use_ratio < threshold('starved_use_ratio') and hosts.read_bytes_per_s is not null
),

-- by the hour, which says enough of what is idle; bytes_per_s: what the node received, or sent if that is more; null: of a
-- port it is not known
networks as (
    select
        cluster, node, hour_ms,
        max(line_rate_ratio) as network_ratio,
        case when bool_and(line_rate_ratio is not null) then sum(line_rate_ratio * speed_bytes_per_s) end as bytes_per_s
    from intermediate.int_link_hours
    where
        node in (select node from waiting union all select node from needy)
        and hour_ms > scope_from_ms() - one_hour_ms()
        and hour_ms < scope_to_ms()
    group by cluster, node, hour_ms
),

of_bins as (
    select
        cluster, node, job_run_key, null as gpu_uuid, start_ms, gpus, jobs,
        unnest([
            {
                'rule': 'io_starved',
                'is_so': use_ratio < threshold('starved_use_ratio')
                    and (cpu_iowait_ratio >= threshold('starved_iowait_ratio') or busy_disks >= threshold('disk_busy_disks')),
                'value': greatest(
                    cpu_iowait_ratio / threshold('starved_iowait_ratio'), busy_disks / threshold('disk_busy_disks')
                ),
                'lost': gpus * (1 - use_ratio)
            },
            {
                'rule': 'small_reads',
                'is_so': use_ratio < threshold('starved_use_ratio')
                    and reads_per_s >= threshold('small_reads_per_s')
                    and read_bytes_per_s <= threshold('small_read_bytes') * reads_per_s,
                'value': reads_per_s / threshold('small_reads_per_s'),
                'lost': gpus * (1 - use_ratio)
            },
            {
                'rule': 'cpu_starved',
                'is_so': use_ratio < threshold('starved_use_ratio') and cpu_busy_ratio >= threshold('starved_cpu_ratio'),
                'value': cpu_busy_ratio / threshold('starved_cpu_ratio'),
                'lost': gpus * (1 - use_ratio)
            },
            {
                'rule': 'cpu_oversubscribed', 'is_so': load1 >= if(jobs > 1, threshold('shared_load'), threshold('oversubscribed_load')) * cpus,
                'value': load1 / cpus / threshold('oversubscribed_load'), 'lost': null
            },
            {
                'rule': 'host_memory_full', 'is_so': memory_used_ratio >= threshold('host_memory_full_ratio'),
                'value': memory_used_ratio / threshold('host_memory_full_ratio'), 'lost': null
            }
        ], max_depth := 2)
    from hosts
    union all by name
    select
        waiting.* exclude (busy_ratio), networks.network_ratio, 'unexplained_wait' as rule, true as is_so,
        waiting.busy_ratio as value
    from waiting
    left join networks
        on waiting.cluster = networks.cluster
        and waiting.node = networks.node
        and waiting.start_ms // one_hour_ms() * one_hour_ms() = networks.hour_ms
    where coalesce(networks.network_ratio < threshold('unexplained_network_ratio'), true)
    union all by name
    select
        needy.cluster, needy.node, needy.job_run_key, needy.start_ms, needy.gpus,
        case when networks.bytes_per_s is not null then networks.network_ratio end as network_ratio,
        'slow_feed' as rule, true as is_so,
        (needy.read_bytes_per_s + coalesce(networks.bytes_per_s, 0)) / needy.gpus / needy.need_bytes_per_s as value,
        needy.gpus * (1 - needy.use_ratio) as lost
    from needy
    left join networks
        on needy.cluster = networks.cluster
        and needy.node = networks.node
        and needy.start_ms // one_hour_ms() * one_hour_ms() = networks.hour_ms
    where value < 1
    union all by name
    select
        bins.cluster, bins.node, bins.job_run_key, bins.gpu_uuid, bins.start_ms, 1 as gpus,
        if(
            bins.pcie_tx_bytes_per_s >= threshold('paging_bytes_per_s')
            and bins.pcie_rx_bytes_per_s >= threshold('paging_bytes_per_s')
            -- several GPUs exchange gradients over PCIe
            and bins.job_run_key in (from single_gpu_jobs),
            'memory_oversubscribed', 'gpu_memory_full'
        ) as rule,
        true as is_so,
        bins.memory_used_bytes / sizes.memory_bytes / threshold('gpu_memory_full_ratio') as value
    from intermediate.int_held_bins as bins
    inner join (select gpu_uuid, max(memory_bytes) as memory_bytes from staging.stg_gpus group by gpu_uuid) as sizes
        using (gpu_uuid)
    where bins.memory_used_bytes >= threshold('gpu_memory_full_ratio') * sizes.memory_bytes
    union all by name
    select
        any_value(bins.cluster) as cluster, any_value(bins.node) as node, bins.job_run_key, bins.gpu_uuid, bins.start_ms,
        1 as gpus, 'gpu_oversubscribed' as rule, true as is_so, min(processes.processes)::double as value
    from staging.stg_gpu_processes as processes
    inner join intermediate.int_held_bins as bins
        on processes.gpu_uuid = bins.gpu_uuid and processes.ts_ms // ten_minutes_ms() * ten_minutes_ms() = bins.start_ms
    where processes.gpu_uuid in (select gpu_uuid from staging.stg_gpu_processes where processes > 1)
    group by bins.job_run_key, bins.gpu_uuid, bins.start_ms
    having min(processes.processes) > 1
),

of_rules as (
    select
        rule, cluster, node, job_run_key, gpu_uuid,
        min(start_ms) as first_ms,
        max(start_ms) + ten_minutes_ms() as last_ms,
        count(*) as bins,
        sum(lost * ten_minutes_ms()) as gpu_ms,
        median(value) as score,
        max(network_ratio) as network_ratio,
        max(jobs) as jobs
    from of_bins
    where is_so
    group by rule, cluster, node, job_run_key, gpu_uuid
    having count(*) >= threshold('host_min_bins')
),

swapped as (
    select
        'swap_in_use' as rule, cluster, node, job_run_key, null as gpu_uuid,
        min(start_ms) as first_ms, max(start_ms) + ten_minutes_ms() as last_ms, count(*) as bins, null as gpu_ms,
        (max(swap_used_bytes) - arg_min(swap_used_bytes, start_ms)) / threshold('swap_growth_bytes') as score
    from hosts
    where swap_used_bytes is not null
    group by cluster, node, job_run_key
    having score >= 1
),

drivers as (
    select
        'driver_skew' as rule, any_value(holds.cluster) as cluster, null as node, holds.job_run_key, null as gpu_uuid,
        max(holds.start_ms) as first_ms, min(coalesce(holds.end_ms, clusters.as_of_ms)) as last_ms, null as bins, null as gpu_ms,
        count(distinct gpus.driver_version)::double as score,
        string_agg(distinct gpus.driver_version, ', ' order by gpus.driver_version) as versions
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    inner join staging.stg_gpus as gpus
        on holds.gpu_uuid = gpus.gpu_uuid
        -- the version of the time of the hold, where the inventory dates it
        and coalesce(gpus.valid_from_ms, 0) < coalesce(holds.end_ms, forever_ms())
        and coalesce(gpus.valid_to_ms, forever_ms()) > holds.start_ms
    where gpus.driver_version is not null and in_window(holds.start_ms, holds.end_ms)
    group by holds.job_run_key
    having count(distinct gpus.driver_version) > 1 and count(distinct holds.node) > 1
),

ecc as (
    select
        'ecc_off' as rule, bins.cluster, bins.node, bins.job_run_key, modes.gpu_uuid,
        min(bins.start_ms) as first_ms, max(bins.start_ms) + ten_minutes_ms() as last_ms, count(*) as bins, null as gpu_ms,
        1.0 as score
    from (
        select gpu_uuid, ts_ms // ten_minutes_ms() * ten_minutes_ms() as start_ms, max(value) as value
        from staging.stg_gpu_samples_other
        where
            metric = 'ecc_mode'
            and ts >= from_ms(scope_from_ms())
            and ts < scope_to_at()
        group by gpu_uuid, ts_ms // ten_minutes_ms()
    ) as modes
    inner join intermediate.int_held_bins as bins using (gpu_uuid, start_ms)
    where modes.value = 0
    group by bins.cluster, bins.node, bins.job_run_key, modes.gpu_uuid
),

found as (
    select * from of_rules
    union all by name
    select * from swapped
    union all by name
    select * from drivers
    union all by name
    select * from ecc
)

select
    found.* exclude (first_ms, last_ms, bins, gpu_ms, network_ratio, jobs, versions),
    owners.run_key,
    owners.run_id,
    owners.job_name,
    owners.team,
    owners.user_name,
    from_ms(found.first_ms) as start_at,
    from_ms(found.last_ms) as end_at,
    found.gpu_ms::bigint as gpu_ms,
    found.gpu_ms / 3600000.0 * prices.price_per_gpu_h as cost,
    case
        when found.rule in ('driver_skew', 'ecc_off') then 'Confirmed'
        when found.rule in ('gpu_oversubscribed', 'gpu_memory_full', 'memory_oversubscribed') then 'Not confirmed'
        when found.rule in ('unexplained_wait', 'slow_feed') and found.network_ratio is null then 'Not confirmed'
        else 'Likely'
    end as confidence,
    case found.rule
        when 'io_starved' then printf(
            'disks of the host busy, or cores waiting for them, at %.1f times the limit while its GPUs were used little',
            found.score
        )
        when 'small_reads' then printf(
            'its disks read %.0f times a second, at most %.0f KiB each, while its GPUs were used little',
            found.score * threshold('small_reads_per_s'), threshold('small_read_bytes') / 1024
        )
        when 'slow_feed' then printf(
            'each GPU got about %.0f %% of the input that its job needs while it was used little', 100 * found.score
        ) || case when found.network_ratio is null then '; its network is not measured' else '' end
        when 'cpu_starved' then printf(
            'the cores of the host were busy for %.0f %% while its GPUs were used little',
            100 * found.score * threshold('starved_cpu_ratio')
        )
        when 'unexplained_wait' then printf(
            'a kernel ran %.0f %% of the time on its GPUs while the cores and disks of the host were idle', 100 * found.score
        ) || coalesce(
            printf(' and its ports at most %.0f %% used', 100 * found.network_ratio), '; its network is not measured'
        )
        when 'cpu_oversubscribed' then printf(
            'load average %.1f times the number of cores', found.score * threshold('oversubscribed_load')
        ) || case when found.jobs > 1 then '; ' || found.jobs || ' jobs have GPUs of the node' else '' end
        when 'gpu_oversubscribed' then printf('%.0f processes on the GPU at once', found.score)
        when 'host_memory_full' then printf(
            '%.1f %% of the memory of the host in use', 100 * found.score * threshold('host_memory_full_ratio')
        )
        when 'gpu_memory_full' then printf(
            '%.1f %% of the memory of the GPU in use', 100 * found.score * threshold('gpu_memory_full_ratio')
        )
        when 'memory_oversubscribed' then printf(
            '%.1f %% of the memory of the GPU in use, and at least %.0f GB/s over PCIe in both directions',
            100 * found.score * threshold('gpu_memory_full_ratio'), threshold('paging_bytes_per_s') / 1e9
        )
        when 'swap_in_use' then printf(
            'swap in use grew by %.1f GB while it ran', found.score * threshold('swap_growth_bytes') / 1e9
        )
        when 'driver_skew' then 'driver versions ' || found.versions || ' in one job'
        else 'ECC of the GPU is off'
    end
    || coalesce(', in ' || found.bins || ' ten-minute means', '') as evidence
from found
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_job_run_prices as prices using (job_run_key)
left join intermediate.int_gpu_names as models using (gpu_uuid)
where in_scope(
    found.cluster, found.node, found.gpu_uuid, models.gpu_model,
    owners.team, owners.user_name, owners.run_key, owners.partition
)
