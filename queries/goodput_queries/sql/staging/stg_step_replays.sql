-- Replayed steps of a run, of the trace that was read last.
-- grain: cluster, run_id
select
    source,
    coalesce(cluster, 'default') as cluster,
    * exclude (source, cluster, load_sequence)
from raw.step_replays
qualify row_number() over (partition by coalesce(cluster, 'default'), run_id order by load_sequence desc, trace_id) = 1
