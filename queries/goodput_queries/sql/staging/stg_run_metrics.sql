-- Numbers that jobs report in `metric` events in fields of their own names, with times in epoch ms.
-- grain: none (a field of an event as it was written)
-- metric: name of the field, at most 100 characters
select
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    events.run_id,
    events.attempt,
    to_ms(events.ts) as at_ms,
    fields.key[:100] as metric,
    fields.atom::double as value
from raw.job_events as events
cross join json_each(events.extra) as fields
left join staging.stg_node_clusters as node_clusters on events.host = node_clusters.node
where
    events.event = 'metric'
    and fields.type in ('DOUBLE', 'UBIGINT', 'BIGINT')
    and fields.key not in ('params', 'planned_steps', 'progress_ratio', 'input_bytes_per_gpu_s')
