-- Steps that name the pass over the data that they are of, in the field `epoch`.
-- grain: none (a step as each rank wrote it)
-- epoch: whole part of the field
select
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    events.run_id,
    to_ms(events.ts) as end_ms,
    events.step,
    floor(try_cast(events.extra ->> '$.epoch' as double))::integer as epoch,
    events.dur_s,
    events.data_s
from raw.job_events as events
left join staging.stg_node_clusters as node_clusters on events.host = node_clusters.node
where events.event = 'step' and events.extra is not null and try_cast(events.extra ->> '$.epoch' as double) is not null
