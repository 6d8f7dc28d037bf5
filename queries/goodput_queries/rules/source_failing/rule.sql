-- of the whole database: none where the scope is a part of it
select
    null as cluster,
    source || ' ' || origin as detail,
    coalesce(failing_since_at, answered_at) as start_at,
    null as end_at,
    case when state = 'late' then 'note' else 'ticket' end as severity,
    'Confirmed' as confidence,
    source || ' at ' || left(origin, 120) || ' is ' || state || case
        when failures > 0 then ' (' || counted(failures, 'failure') || ' in a row)' else ''
    end as evidence
from marts.live_sources
where state in ('late', 'stale', 'failing') and is_whole_fleet()
