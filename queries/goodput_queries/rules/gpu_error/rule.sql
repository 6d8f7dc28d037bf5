-- skip_if_empty: marts.gpu_incidents
select
    cluster,
    node,
    gpu_uuid,
    run_key,
    case when gpu_uuid is null then device else '' end as detail,
    start_at,
    end_at,
    case when coalesce(severity in ('gpu_fatal', 'node_fatal'), true) then 'ticket' else 'note' end as severity,
    'Confirmed' as confidence,
    case when kind = 'xid' then 'Xid ' || code || coalesce(' (' || meaning || ')', '') else replace(kind, '_', ' ') end
        || ', ' || counted(events, 'line') || ' of ' || sources as evidence,
    what_to_do
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
