-- Errors and thermal slowdown of nodes by day (UTC) in the scope's window. A row with 0 was read; where nothing
-- was read there is no row.
-- grain: cluster, node, day_at, kind
-- evaluated: first
-- kind: reference.health_kinds, with unit
-- value: number of incidents, rise of the counters of errors (never their raw value), or seconds of GPU time
-- gpus: number of GPUs that were read; null where the kind is not of single GPUs
with thermal_by_reason as (
    select
        cluster,
        node,
        gpu_uuid,
        start_ms // 86400000 as day,
        sum(600.0 * slowed / read) as value
    from (
        select
            cluster,
            node,
            gpu_uuid,
            start_ms,
            max(greatest(clocks_event_reasons.sw_thermal, clocks_event_reasons.hw_thermal)) as slowed,
            max(clocks_event_reasons.n) as read
        from marts.gpu_metrics
        where clocks_event_reasons.n > 0 and node is not null
        group by cluster, node, gpu_uuid, start_ms
    )
    group by cluster, node, gpu_uuid, start_ms // 86400000
),

counted as (
    select cluster, node, gpu_uuid, kind, hour_ms // 86400000 as day, sum(rise) as value
    from intermediate.int_error_rises
    where kind in (select kind from reference.health_kinds) and in_place(cluster, node, gpu_uuid, gpu_model)
    group by all
),

of_gpus as (
    select cluster, node, gpu_uuid, 'thermal' as kind, day, value from thermal_by_reason
    union all
    select cluster, node, gpu_uuid, kind, day, value
    from counted
    -- reasons say more than counters of time
    where kind <> 'thermal' or (cluster, node, gpu_uuid, day) not in (
        select (cluster, node, gpu_uuid, day) from thermal_by_reason
    )
),

incidents as (
    select cluster, node, 'xid_' || class as kind, epoch_ms(start_at) // 86400000 as day, count(*) as value
    from marts.gpu_incidents
    where node is not null
    group by all
),

-- from the first to the last event of a cluster its kernel logs, or other sources of events, were read
reported as (
    select cluster, min(at_ms) // 86400000 as first_day, max(at_ms) // 86400000 as last_day
    from staging.stg_gpu_events
    group by cluster
),

in_service as (
    select
        cluster,
        node,
        unnest(range(min(start_ms) // 86400000, (max(end_ms) - 1) // 86400000 + 1)) as day
    from intermediate.int_stays_in_scope
    group by cluster, node
),

read_for_xids as (
    select in_service.cluster, in_service.node, in_service.day
    from in_service
    inner join reported
        on in_service.cluster = reported.cluster
        and in_service.day between reported.first_day and reported.last_day
    union
    select cluster, node, hour_ms // 86400000
    from intermediate.int_error_rises
    where kind = 'xid_gauge' and in_place(cluster, node, gpu_uuid, gpu_model)
),

xids as (
    select cluster, node, day, kinds.kind, coalesce(incidents.value, 0) as value
    from read_for_xids
    cross join (select kind from reference.health_kinds where kind like 'xid%') as kinds
    full join incidents using (cluster, node, day, kind)
),

found as (
    select cluster, node, day, kind, sum(value) as value, count(*) as gpus
    from of_gpus
    group by all
    union all
    select cluster, node, day, kind, value, null from xids
)

select
    found.cluster,
    found.node,
    from_ms(found.day * 86400000) as day_at,
    found.kind,
    kinds.unit,
    found.value::double as value,
    found.gpus
from found
inner join reference.health_kinds as kinds using (kind)
