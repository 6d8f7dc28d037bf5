-- Faults of a fabric in the scope's window: links of several nodes, or NVLinks of several GPUs of a node, that fail at one
-- time are one incident, since one switch, cable tray or baseboard carries them all. A link is known to have failed
-- between two readings: failures whose readings overlap may be of one time.
-- grain: cluster, kind, start_at
-- skip_if_empty: raw.gpu_events, marts.link_events
-- kind: nvlink, else the kind of the ports (infiniband, ethernet)
-- start_at, last_at: first and last sign of it; end_at: the last link is up again; null: one is still down, or not known
-- members: number of ports, or of GPUs and NVSwitches; switches: of them NVSwitches; codes: 'Xid 74', 'SXid 20034', sorted;
-- node_names, nodes: where; shared: what all members have in common: a node, a
--  device name (a rail) or a rack; null: nothing that is known
-- run_ids, run_names, runs: that had GPUs of these nodes meanwhile; gpus: number of their GPUs there
-- confidence: Likely where the members have something in common, else Not confirmed
with signs as (
    select
        events.cluster,
        'nvlink' as kind,
        events.node,
        coalesce(events.pci_bus_id, events.gpu_uuid, '') as device,
        -- NVLinks end inside the node
        events.node as fabric,
        case events.kind when 'sxid' then 'SXid ' else 'Xid ' end || events.code as code,
        epoch_ms(events.event_at) as after_ms,
        epoch_ms(events.event_at) as at_ms,
        null::bigint as end_ms,
        false as has_end
    from marts.gpu_events as events
    left join reference.xid_codes as codes on events.kind = 'xid' and events.code = codes.xid
    where
        -- errors of the switches themselves, and of links at GPUs
        (events.kind = 'sxid' or codes.class = 'nvlink' and events.severity <> 'info')
        and (events.ts_precision <> 'at_or_before' or events.source = 'nvml')
    union all
    select
        cluster, kind, node, device || coalesce('/' || port, ''), '', null, epoch_ms(after_at), epoch_ms(start_at), epoch_ms(end_at),
        true
    from marts.link_events
),

marked as (
    select
        *,
        coalesce(
            after_ms > max(at_ms) over (
                partition by cluster, kind, fabric order by after_ms, at_ms rows between unbounded preceding and 1 preceding
            ) + case when kind = 'nvlink' then threshold('incident_quiet_ms') else 0 end,
            true
        ) as is_new
    from signs
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by cluster, kind, fabric order by after_ms, at_ms rows unbounded preceding
        ) as incident
    from marked
),

incidents as (
    select
        numbered.cluster,
        numbered.kind,
        numbered.fabric,
        numbered.incident,
        min(numbered.at_ms) as first_ms,
        min(numbered.after_ms) as after_ms,
        max(numbered.at_ms) as last_ms,
        case when bool_and(numbered.has_end and numbered.end_ms is not null) then max(numbered.end_ms) end as end_ms,
        count(distinct (numbered.node, numbered.device)) as members,
        count(distinct numbered.device) filter (where starts_with(numbered.code, 'SXid')) as switches,
        coalesce(list_sort(list_distinct(list(numbered.code))), []) as codes,
        list_sort(list_distinct(list(numbered.node))) as node_names,
        count(distinct numbered.node) as nodes,
        case
            when count(distinct numbered.node) = 1 then 'node ' || any_value(numbered.node)
            when count(distinct numbered.device) = 1 then 'device ' || any_value(numbered.device)
            when count(distinct racks.rack) = 1 and count(racks.rack) = count(*) then 'rack ' || any_value(racks.rack)
        end as shared
    from numbered
    left join staging.stg_node_racks as racks on numbered.cluster = racks.cluster and numbered.node = racks.node
    group by numbered.cluster, numbered.kind, numbered.fabric, numbered.incident
    having members >= case when numbered.kind = 'nvlink' then 2 else threshold('fabric_min_links') end
),

touched as (
    select
        places.cluster,
        places.kind,
        places.fabric,
        places.incident,
        list_sort(list_distinct(list(owners.run_id))) as run_ids,
        list_sort(list_distinct(list(coalesce(owners.job_name, owners.run_id)))) as run_names,
        count(distinct holds.gpu_uuid) as gpus
    from (select *, unnest(node_names) as node from incidents) as places
    inner join intermediate.int_holds as holds
        on places.cluster = holds.cluster
        and places.node = holds.node
        and holds.start_ms <= coalesce(places.end_ms, places.last_ms)
        -- an Xid that ends a run is logged within a minute
        and coalesce(holds.end_ms, 9223372036854715807) + 60000 > places.after_ms
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    group by places.cluster, places.kind, places.fabric, places.incident
)

select
    incidents.* exclude (fabric, incident, first_ms, after_ms, last_ms, end_ms),
    from_ms(incidents.first_ms) as start_at,
    from_ms(incidents.last_ms) as last_at,
    from_ms(incidents.end_ms) as end_at,
    coalesce(touched.run_ids, []) as run_ids,
    coalesce(touched.run_names, []) as run_names,
    len(coalesce(touched.run_ids, [])) as runs,
    coalesce(touched.gpus, 0) as gpus,
    case when incidents.shared is not null then 'Likely' else 'Not confirmed' end as confidence
from incidents
left join touched using (cluster, kind, fabric, incident)
