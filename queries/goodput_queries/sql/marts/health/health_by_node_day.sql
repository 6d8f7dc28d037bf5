-- Errors and thermal slowdown of nodes by day (UTC) in the scope's window. A row with 0 was read; where nothing
-- was read there is no row.
-- grain: cluster, node, day_at, kind
-- skip_if_empty: intermediate.int_gpu_metrics, intermediate.int_error_reads, marts.gpu_incidents, raw.gpu_events
-- kind: reference.health_kinds, with unit
-- value: number of incidents, rise of the counters of errors (never their raw value), or seconds of GPU time
-- gpus: number of GPUs that were read; null where the kind is not of single GPUs
with slowed_gpus as (
    select distinct gpu_uuid
    from intermediate.int_gpu_metrics
    where
        clocks_event_reasons.sw_thermal + clocks_event_reasons.hw_thermal > 0
        and hour_ms > scope_from_ms() - one_hour_ms()
        and hour_ms < scope_to_ms()
),

thermal_by_reason as (
    select cluster, node, gpu_uuid, day, sum(value) as value
    from (
        select
            metrics.cluster,
            metrics.node,
            metrics.gpu_uuid,
            metrics.start_ms // one_day_ms() as day,
            -- instances of a GPU slow down with it; of one that never did a day is as good as its ten minutes
            case when slowed_gpus.gpu_uuid is not null then metrics.start_ms end as slowed_ms,
            600.0 * max(greatest(metrics.clocks_event_reasons.sw_thermal, metrics.clocks_event_reasons.hw_thermal))
            / max(metrics.clocks_event_reasons.n) as value
        from marts.gpu_metrics as metrics
        left join slowed_gpus using (gpu_uuid)
        where metrics.clocks_event_reasons.n > 0 and metrics.node is not null
        group by all
    )
    group by cluster, node, gpu_uuid, day
),

counted as (
    select reads.cluster, reads.node, reads.gpu_uuid, reads.kind, reads.day, coalesce(rises.value, 0) as value
    from intermediate.int_error_reads as reads
    left join (
        select cluster, node, gpu_uuid, kind, hour_ms // one_day_ms() as day, sum(rise) as value
        from intermediate.int_error_rises
        group by all
    ) as rises using (cluster, node, gpu_uuid, kind, day)
    where
        reads.kind in (select kind from reference.health_kinds)
        and in_place(reads.cluster, reads.node, reads.gpu_uuid, reads.gpu_model)
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
    select cluster, node, 'xid_' || class as kind, epoch_ms(start_at) // one_day_ms() as day, count(*) as value
    from marts.gpu_incidents
    where node is not null
    group by all
),

-- from the first to the last event of a cluster its kernel logs, or other sources of events, were read
reported as (
    select cluster, min(at_ms) // one_day_ms() as first_day, max(at_ms) // one_day_ms() as last_day
    from staging.stg_gpu_events
    group by cluster
),

in_service as (
    select
        cluster,
        node,
        unnest(range(min(start_ms) // one_day_ms(), (max(end_ms) - 1) // one_day_ms() + 1)) as day
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
    select cluster, node, day
    from intermediate.int_error_reads
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
    found.* exclude (day, value),
    from_ms(found.day * one_day_ms()) as day_at,
    kinds.unit,
    found.value::double as value
from found
inner join reference.health_kinds as kinds using (kind)
