-- skip_if_empty: marts.link_events
select
    cluster,
    node,
    device || coalesce(' port ' || port, '') as detail,
    start_at,
    end_at,
    end_at is not null as is_over,
    case when is_seen_down then 'Confirmed' else 'Likely' end as confidence,
    device || coalesce(' port ' || port, '') || case
        when is_seen_down then ' was read as down' else ' went down between two readings, by its counter'
    end as evidence
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
