-- Hangs, errors of GPUs, bad nodes and trouble of the network in the scope, as findings.
-- grain: rule, cluster, node, gpu_uuid, run_key, detail, since_ms
-- evaluated: first
-- detail: what distinguishes two findings of one subject: a code, a port
-- until_ms: when it was last seen; null: it still is
with errors as (
    select
        *,
        coalesce(severity in ('gpu_fatal', 'node_fatal'), true) as is_fatal
    from marts.gpu_incidents as incidents
    where
        class = 'hardware'
        and (sees_all_teams() or run_key in (select run_key from intermediate.int_runs_of_one_team where of_teams(team)))
        -- of a fault of the node's NVLinks each GPU has a part
        and not exists (
            select 1
            from marts.fabric_incidents as fabric
            inner join reference.xid_codes as codes on codes.xid = incidents.code and codes.class = 'nvlink'
            where
                fabric.kind = 'nvlink'
                and fabric.cluster = incidents.cluster
                and list_contains(fabric.node_names, incidents.node)
                and incidents.start_at <= fabric.last_at
                and incidents.end_at >= fabric.start_at
        )
)

select
    'hang' as rule,
    cluster,
    culprit_node as node,
    culprit_gpu_uuid as gpu_uuid,
    run_key,
    '' as detail,
    epoch_ms(since_at) as since_ms,
    epoch_ms(last_seen_at) as until_ms,
    'critical' as severity,
    confidence,
    coalesce('rank ' || culprit_rank || ' ', '') || evidence as evidence,
    null::varchar as what_to_do
from marts.hangs
where is_root
union all
select
    'gpu_error',
    cluster,
    node,
    gpu_uuid,
    run_key,
    case when gpu_uuid is null then device else '' end,
    epoch_ms(start_at),
    epoch_ms(end_at),
    case when is_fatal then 'warning' else 'info' end,
    'Confirmed',
    case when kind = 'xid' then 'Xid ' || code || coalesce(' (' || meaning || ')', '') else replace(kind, '_', ' ') end
        || ', ' || counted(events, 'line') || ' of ' || sources,
    what_to_do
from errors
union all
select
    'bad_node',
    health.cluster,
    health.node,
    null,
    null,
    '',
    epoch_ms(coalesce(health.last_at, clusters.as_of_at)),
    epoch_ms(coalesce(health.last_at, clusters.as_of_at)),
    case health.verdict when 'Replace' then 'critical' when 'Drain' then 'warning' else 'info' end,
    'Likely',
    health.verdict_reason || ' in the time shown',
    health.verdict || coalesce('. ' || health.what_to_do, '')
from marts.node_verdicts as health
inner join marts.clusters as clusters using (cluster)
where
    health.verdict in ('Replace', 'Drain')
    and sees_all_teams()
    and exists (
        select 1
        from marts.ledger_scoped_by_node as scoped
        where scoped.cluster = health.cluster and scoped.node = health.node
    )
union all
select
    'link_down',
    cluster,
    node,
    null,
    null,
    device || coalesce(' port ' || port, ''),
    epoch_ms(start_at),
    epoch_ms(end_at),
    'warning',
    case when is_seen_down then 'Confirmed' else 'Likely' end,
    device || coalesce(' port ' || port, '') || case
        when is_seen_down then ' was read as down' else ' went down between two readings, by its counter'
    end,
    null
from marts.link_events as events
where
    sees_all_teams()
    and not exists (
        select 1
        from marts.fabric_incidents as fabric
        where
            fabric.cluster = events.cluster
            and fabric.kind = events.kind
            and events.start_at between fabric.start_at and fabric.last_at
    )
union all
select
    'fabric_fault',
    cluster,
    case when nodes = 1 then node_names[1] end,
    null,
    null,
    kind || coalesce(', ' || shared, ''),
    epoch_ms(start_at),
    case when kind = 'nvlink' then epoch_ms(last_at) else epoch_ms(end_at) end,
    'critical',
    confidence,
    case when kind = 'nvlink' then counted(members, 'GPU') || ' with NVLink errors' else counted(members, 'link') || ' down' end
        || ' on ' || counted(nodes, 'node') || ' at one time' || coalesce(', all of ' || shared, '')
        || case when runs > 0 then '; it touched ' || counted(runs, 'run') || ' on ' || counted(gpus, 'GPU') else '' end,
    null
from marts.fabric_incidents
where sees_all_teams()
union all
select
    'slow_link',
    slow.cluster,
    slow.node,
    null,
    slow.run_key,
    '',
    scope_start(epoch_ms(clusters.first_at)),
    scope_end(epoch_ms(clusters.as_of_at)),
    case when slow.verdict = 'Not confirmed' then 'info' else 'warning' end,
    slow.verdict,
    slow.slow_communicators || ' of ' || counted(slow.communicators, 'communicator')
        || case when slow.slow_communicators = 1 then ' reaches' else ' reach' end || ' less than '
        || cast(round(100 * threshold('slow_link_ratio')) as integer) || ' % of what is expected, the slowest '
        || cast(round(100 * slow.least_ratio) as integer) || ' %' || coalesce('; a port has trouble: ' || slow.link_trouble, '')
        || case
            when slow.limited_communicators > 0
                then '; no operation of it is faster, and others between the same nodes are: its link was slow then, or its'
                    || ' settings of NCCL make it so'
            else ''
        end,
    case
        when slow.limited_communicators > 0 and slow.link_trouble is null
            then 'Compare the settings and channels of NCCL with those of a run that is fast; else check links and adapters'
    end
from marts.slow_nodes as slow
inner join marts.clusters as clusters using (cluster)
where sees_all_teams()
union all
select
    'socket_fallback',
    transports.cluster,
    transports.node,
    null,
    transports.run_key,
    '',
    scope_start(epoch_ms(clusters.first_at)),
    scope_end(epoch_ms(clusters.as_of_at)),
    'warning',
    'Confirmed',
    counted(transports.processes, 'process') || ' of NCCL use ' || transports.transport || ' between nodes',
    null
from marts.transports as transports
inner join marts.clusters as clusters using (cluster)
where
    transports.is_fallback
    and transports.has_infiniband
    and (
        sees_all_teams()
        or transports.run_key in (select run_key from intermediate.int_runs_of_one_team where of_teams(team))
    )
