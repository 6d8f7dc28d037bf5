-- skip_if_empty: marts.fabric_incidents
select
    cluster,
    case when nodes = 1 then node_names[1] end as node,
    -- the subject, where no one node is: all that it names have a flag
    concat_ws(', ', kind, shared, case when nodes > 1 then array_to_string(node_names, ', ') end) as detail,
    start_at,
    case when kind = 'nvlink' then last_at else end_at end as end_at,
    case when runs > 0 then 'allocated' end as effect,
    kind <> 'nvlink' and end_at is not null as is_over,
    confidence,
    case
        when kind = 'nvlink'
            then concat_ws(' and ', counted(nullif(switches, 0), 'NVSwitch'), counted(nullif(members - switches, 0), 'GPU'))
                || ' with NVLink errors (' || array_to_string(codes, ', ') || ')'
        else counted(members, 'link') || ' down'
    end
        || ' on ' || counted(nodes, 'node') || ' at one time' || coalesce(', all of ' || shared, '')
        || case when runs > 0 then '; it touched ' || counted(runs, 'run') || ' on ' || counted(gpus, 'GPU') else '' end
        as evidence
from marts.fabric_incidents
where sees_all_teams()
