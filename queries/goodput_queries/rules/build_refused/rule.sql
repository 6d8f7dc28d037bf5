-- of the whole database: none where the scope is a part of it
-- skip_if_empty: state.refused_builds
select
    null as cluster,
    invariant as detail,
    refused_at as start_at,
    null as end_at,
    'Confirmed' as confidence,
    counted(n, 'case') || ', for example ' || example as evidence
from state.refused_builds
where is_whole_fleet()
