-- What happened to the GPUs, hosts and links of serving engines in their latency spikes or shortly
-- before, and what they did themselves: causes as far as time shows them. What is so at other times too is none.
-- grain: cluster, endpoint, engine, model, start_ms, cause
-- access: team
-- skip_if_empty: marts.serving_slow_times
-- cause: gpu_event, link_down, memory_kill, throttling, queue, preemptions, host_cpu, host_disk, host_network, neighbour, error_counters
--  (PCIe, NVLink, ECC, which are known by hour)
-- place: order in which they are named: what is broken first, what others or the load may do last
-- evidence: in a few words, times in UTC
with spikes as (
    select *, start_ms - threshold('serving_spike_reach_ms')::bigint as from_ms, row_number() over () as spike
    from marts.serving_slow_times
),

gpus as (
    select distinct spikes.spike, spikes.from_ms, spikes.start_ms, spikes.end_ms, gpus.cluster, gpus.node, gpus.gpu_uuid
    from spikes
    inner join marts.serving_gpus as gpus
        on spikes.cluster = gpus.cluster
        and spikes.endpoint = gpus.endpoint
        and spikes.engine = gpus.engine
        and gpus.start_ms < spikes.end_ms
        and gpus.end_ms > spikes.start_ms
),

nodes as (
    select spike, from_ms, start_ms, end_ms, cluster, node from gpus
    union
    select spikes.spike, spikes.from_ms, spikes.start_ms, spikes.end_ms, spikes.cluster, endpoints.node
    from spikes
    inner join marts.serving_endpoints as endpoints using (cluster, endpoint)
    where endpoints.node is not null
),

units as (
    select gpu_uuid, max(coalesce(gpu_index, slurm_index)) as gpu_index
    from intermediate.int_gpu_units
    where gpu_uuid in (select gpu_uuid from gpus)
    group by gpu_uuid
),

slowed as (
    select
        gpus.spike,
        gpus.gpu_uuid,
        avg(readings.is_slowed::integer) filter (where readings.ts_ms between gpus.start_ms and gpus.end_ms) as inside,
        coalesce(avg(readings.is_slowed::integer) filter (where readings.ts_ms < gpus.from_ms), 0) as before
    from gpus
    inner join intermediate.int_slowed_readings as readings
        on gpus.gpu_uuid = readings.gpu_uuid and readings.ts_ms between gpus.from_ms - one_hour_ms() and gpus.end_ms
    group by gpus.spike, gpus.gpu_uuid
),

counted_slow as (
    select gpus.spike, gpus.gpu_uuid, sum(counters.throttled_ms) as throttled_ms
    from gpus
    inner join intermediate.int_throttle_counters as counters
        on gpus.gpu_uuid = counters.gpu_uuid
        and counters.start_ms between gpus.from_ms and gpus.end_ms
        and counters.reason <> 'sw_power_cap'
    group by gpus.spike, gpus.gpu_uuid
),

gpu_events as (
    select
        gpus.spike, events.at_ms, events.source, gpus.gpu_uuid,
        case when events.kind = 'xid' then 'Xid ' || events.code else replace(events.kind, '_', ' ') end as what
    from gpus
    inner join intermediate.int_gpu_inventory as stays
        on gpus.gpu_uuid = stays.gpu_uuid
        and gpus.end_ms >= coalesce(stays.start_ms, 0)
        and gpus.start_ms < coalesce(stays.end_ms, forever_ms())
    inner join staging.stg_gpu_events as events
        on (
            events.gpu_uuid = gpus.gpu_uuid
            or events.gpu_uuid is null
            and events.cluster = gpus.cluster
            and events.node = gpus.node
            and events.pci_bus_id = stays.pci_bus_id
        )
        and events.at_ms between gpus.from_ms and gpus.end_ms
    -- a gauge that holds the last code says nothing of when
    where events.ts_precision <> 'at_or_before'
),

errors as (
    select gpus.spike, gpus.gpu_uuid, rises.kind, sum(rises.rise) as rise
    from gpus
    inner join intermediate.int_error_rises as rises
        on gpus.gpu_uuid = rises.gpu_uuid
        and rises.hour_ms < gpus.end_ms
        and rises.hour_ms + one_hour_ms() > gpus.from_ms
        and rises.kind in ('nvlink', 'pcie', 'ecc_uncorrected')
        and rises.rise > 0
    group by gpus.spike, gpus.gpu_uuid, rises.kind
),

loads as (
    select
        spikes.spike,
        avg(intervals.requests_waiting) filter (where intervals.end_ms > spikes.start_ms) as waiting,
        avg(intervals.requests_waiting) filter (where intervals.end_ms <= spikes.start_ms) as waiting_before,
        sum(intervals.preemptions) filter (where intervals.end_ms > spikes.start_ms) as preemptions,
        sum(intervals.preemptions) filter (where intervals.end_ms <= spikes.start_ms) as preemptions_before
    from spikes
    inner join marts.serving_intervals as intervals
        on spikes.cluster = intervals.cluster
        and spikes.endpoint = intervals.endpoint
        and spikes.engine = intervals.engine
        and spikes.model = intervals.model
        -- before it for as long again, at least five minutes
        and intervals.end_ms > 2 * spikes.start_ms - greatest(spikes.end_ms, spikes.start_ms + 300000)
        and intervals.start_ms < spikes.end_ms
    group by spikes.spike
),

hosts as (
    select
        nodes.spike,
        nodes.node,
        max(hosts.cpu_busy_ratio) filter (where is_inside) as cpu,
        max(hosts.cpu_iowait_ratio) filter (where is_inside) as iowait,
        max(hosts.tcp_retransmit_ratio) filter (where is_inside) as retransmits,
        coalesce(median(hosts.cpu_busy_ratio) filter (where not is_inside), 0) as cpu_before,
        coalesce(median(hosts.cpu_iowait_ratio) filter (where not is_inside), 0) as iowait_before,
        coalesce(median(hosts.tcp_retransmit_ratio) filter (where not is_inside), 0) as retransmits_before
    from nodes
    inner join (
        select hosts.*, spans.spike, hosts.end_ms > spans.start_ms as is_inside
        from marts.host_intervals as hosts
        inner join nodes as spans
            on hosts.cluster = spans.cluster
            and hosts.node = spans.node
            and hosts.end_ms > spans.start_ms - one_hour_ms()
            and hosts.start_ms < spans.end_ms
    ) as hosts using (spike, cluster, node)
    group by nodes.spike, nodes.node
),

-- whose jobs a reader does not see are none to it
neighbours as (
    select
        nodes.spike, nodes.node, holds.job_run_key,
        min(holds.start_ms) as at_ms,
        count(distinct holds.gpu_uuid) as gpus,
        any_value(coalesce(nullif(owners.job_name, ''), owners.run_id)) as name
    from nodes
    inner join intermediate.int_holds as holds
        on nodes.cluster = holds.cluster
        and nodes.node = holds.node
        and holds.start_ms between nodes.from_ms and nodes.end_ms
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        of_teams(owners.team)
        and (nodes.spike, holds.gpu_uuid) not in (select (spike, gpu_uuid) from gpus)
    group by nodes.spike, nodes.node, holds.job_run_key
),

found as (
    select
        spike, 1 as place, 'gpu_event' as cause, at_ms,
        what || ' of GPU ' || coalesce(units.gpu_index::varchar, events.gpu_uuid) || strftime(from_ms(at_ms), ' at %H:%M:%S') as evidence
    from gpu_events as events
    left join units using (gpu_uuid)
    union all
    select
        nodes.spike, 2, 'link_down', epoch_ms(links.after_at),
        'link ' || links.device || ' of ' || nodes.node || ' down' || strftime(links.start_at, ' at %H:%M:%S')
    from nodes
    inner join marts.link_events as links
        on nodes.cluster = links.cluster
        and nodes.node = links.node
        and epoch_ms(links.after_at) < nodes.end_ms
        and coalesce(epoch_ms(links.end_at), forever_ms()) > nodes.from_ms
    union all
    select
        nodes.spike, 3, 'memory_kill', events.at_ms,
        'out-of-memory kill on ' || nodes.node || strftime(from_ms(events.at_ms), ' at %H:%M:%S')
    from nodes
    inner join staging.stg_node_events as events
        on nodes.cluster = events.cluster
        and nodes.node = events.node
        and events.at_ms between nodes.from_ms and nodes.end_ms
        and events.kind = 'oom_kill'
    union all
    select
        spike, 4, 'throttling', 0,
        'clocks of GPU ' || coalesce(units.gpu_index::varchar, slowed.gpu_uuid) || ' lowered by heat, power brake or the board in '
            || percent_text(inside) || ' of its readings'
    from slowed
    left join units using (gpu_uuid)
    where inside >= threshold('serving_spike_throttled') and inside >= 2 * before
    union all
    select
        spike, 4, 'throttling', 0,
        'GPU ' || coalesce(units.gpu_index::varchar, counted_slow.gpu_uuid) || ' throttled for ' || printf('%.0f s', throttled_ms / 1000.0)
    from counted_slow
    left join units using (gpu_uuid)
    union all
    select
        spike, 12, 'error_counters', 0,
        case kind when 'nvlink' then counted(rise::bigint, 'NVLink error') when 'pcie' then counted(rise::bigint, 'PCIe replay')
            else counted(rise::bigint, 'uncorrected ECC error') end
            || ' of GPU ' || coalesce(units.gpu_index::varchar, errors.gpu_uuid) || ' within its hours'
    from errors
    left join units using (gpu_uuid)
    union all
    select
        spike, 6, 'queue', 0,
        printf('%.1f requests waiting, %.1f before', waiting, coalesce(waiting_before, 0))
    from loads
    where waiting >= 1 and waiting >= 2 * coalesce(waiting_before, 0)
    union all
    select
        spike, 7, 'preemptions', 0,
        counted(preemptions::bigint, 'preemption') || ', ' || coalesce(preemptions_before, 0)::bigint || ' before'
    from loads
    where preemptions >= 1 and preemptions >= 2 * coalesce(preemptions_before, 0)
    union all
    select
        spike, 8, 'host_cpu', 0,
        'cores of ' || node || ' busy for ' || percent_text(cpu) || ', ' || percent_text(cpu_before) || ' before'
    from hosts
    where cpu >= threshold('starved_cpu_ratio') and cpu - cpu_before >= 0.1
    union all
    select
        spike, 9, 'host_disk', 0,
        'cores of ' || node || ' waiting for disks for ' || percent_text(iowait) || ', ' || percent_text(iowait_before) || ' before'
    from hosts
    where iowait >= threshold('starved_iowait_ratio') and iowait >= 2 * iowait_before
    union all
    select
        spike, 10, 'host_network', 0,
        percent_text(retransmits) || ' of the TCP segments of ' || node || ' sent again, ' || percent_text(retransmits_before) || ' before'
    from hosts
    where retransmits >= threshold('serving_spike_retransmits') and retransmits >= 2 * retransmits_before
    union all
    select
        spike, 11, 'neighbour', at_ms,
        'job ' || coalesce(name, '') || ' began on ' || counted(gpus, 'GPU') || ' of ' || node || strftime(from_ms(at_ms), ' at %H:%M:%S')
    from neighbours
)

select
    spikes.cluster,
    spikes.endpoint,
    spikes.engine,
    spikes.model,
    spikes.start_ms,
    found.cause,
    min(found.place) as place,
    string_agg(distinct found.evidence, ', ' order by found.evidence) as evidence
from found
inner join spikes using (spike)
group by spikes.cluster, spikes.endpoint, spikes.engine, spikes.model, spikes.start_ms, found.cause
