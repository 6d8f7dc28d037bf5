-- Incidents of GPUs in the scope's window: Xid and other events of one GPU with less than five minutes between them,
-- whichever sources report them. One fault is logged several times, under several codes, and shown again by a gauge.
-- grain: cluster, node, device, start_at
-- skip_if_empty: raw.gpu_events
-- device: PCI address of the GPU, else its UUID; gpu_uuid, gpu_index: null where the GPU is not known
-- start_at, end_at: first and last event
-- class: hardware (or driver), application (a program causes it), informational
-- codes: every Xid of the incident; code, meaning, severity: of the worst of them, the first of equals
-- what_to_do: what the driver asked for last (Xid 154), else of the worst code
-- kind: of the worst event; events: most that one source reports; sources: who reports it
-- run_key, run_id, job_name: a run that had the GPU at its start
with events as (
    select
        *,
        epoch_ms(event_at) as at_ms,
        coalesce(pci_bus_id, gpu_uuid, '') as device,
        case
            when kind <> 'xid' then 1
            when severity = 'node_fatal' then 0
            when severity = 'gpu_fatal' then 1
            when fault_domain = 'hardware' and severity <> 'info' then 2
            when severity = 'info' then 5
            when fault_domain = 'user' or code_class = 'application' then 4
            else 3
        end as badness
    from marts.gpu_events
    -- a latch first seen at start-up may have been set months ago
    where ts_precision <> 'at_or_before' or source = 'nvml'
),

marked as (
    select
        *,
        coalesce(
            at_ms - lag(at_ms) over (partition by cluster, node, device order by at_ms) > threshold('incident_quiet_ms'),
            true
        ) as is_new
    from events
),

numbered as (
    select
        *,
        count_if(is_new) over (partition by cluster, node, device order by at_ms rows unbounded preceding) as incident
    from marked
),

by_source as (
    select cluster, node, device, incident, source, count(*) as events
    from numbered
    group by all
),

incidents as (
    select
        numbered.cluster,
        numbered.node,
        numbered.device,
        numbered.incident,
        arg_max(numbered.gpu_uuid, numbered.at_ms) as gpu_uuid,
        arg_max(numbered.gpu_index, numbered.at_ms) as gpu_index,
        min(numbered.event_at) as start_at,
        max(numbered.event_at) as end_at,
        min(numbered.badness) as badness,
        list_sort(list_distinct(list(numbered.code))) as codes,
        arg_min(
            {
                'kind': numbered.kind, 'code': numbered.code, 'meaning': numbered.meaning,
                'severity': numbered.severity
            },
            (numbered.badness, numbered.at_ms, numbered.code)
        ) as worst,
        -- of two actions of one moment the one that reaches further
        arg_max(action, (numbered.at_ms, -action_rank(action))) filter (where numbered.code = 154) as asked,
        max(numbered.at_ms) filter (where numbered.code = 154) as asked_ms,
        max(numbered.at_ms) filter (where numbered.badness < 2 and numbered.code is distinct from 154) as failed_ms,
        any_value(action) filter (where numbered.code is distinct from 154) as of_others,
        arg_min_null(numbered.what_to_do, (numbered.badness, numbered.at_ms, numbered.code)) as of_worst
    from (select *, recovery_action(kind, code, message) as action from numbered) as numbered
    group by numbered.cluster, numbered.node, numbered.device, numbered.incident
),

reported as (
    select
        * exclude (source, events),
        max(events) as events,
        string_agg(replace(source, '-', ' '), ', ' order by source) as sources
    from by_source
    group by cluster, node, device, incident
),

hit as (
    select
        incidents.cluster,
        incidents.node,
        incidents.device,
        incidents.incident,
        any_value(owners.run_key order by holds.start_ms) as run_key,
        any_value(owners.run_id order by holds.start_ms) as run_id,
        any_value(owners.job_name order by holds.start_ms) as job_name
    from incidents
    inner join intermediate.int_holds as holds
        on incidents.gpu_uuid = holds.gpu_uuid
        and epoch_ms(incidents.start_at) >= holds.start_ms
        -- an Xid that ends a run is logged within a minute
        and epoch_ms(incidents.start_at) < coalesce(holds.end_ms, 9223372036854715807) + 60000
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    group by incidents.cluster, incidents.node, incidents.device, incidents.incident
)

select
    incidents.* exclude (incident, badness, worst, asked, asked_ms, failed_ms, of_others, of_worst),
    coalesce(
        -- nothing is asked for any more, unless it failed again
        case when starts_with(asked, 'None') and failed_ms > asked_ms then null else asked end, of_others, of_worst
    ) as what_to_do,
    case when incidents.badness = 5 then 'informational' when incidents.badness = 4 then 'application' else 'hardware' end as class,
    unnest(incidents.worst),
    reported.events,
    reported.sources,
    hit.run_key,
    hit.run_id,
    hit.job_name
from incidents
inner join reported using (cluster, node, device, incident)
left join hit using (cluster, node, device, incident)
