-- Errors that GPUs reported (Xid and others) whose time is known, as a source reports them.
-- ts: with the fractions of a millisecond that put events in order
-- grain: none (two sources may report one event)
select
    events.* exclude (cluster, node, load_sequence),
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    coalesce(node_clusters.known_as, events.node) as node,
    to_ms(events.ts) as ts_ms
from raw.gpu_events as events
left join staging.stg_node_clusters as node_clusters on events.node = node_clusters.node
-- a latch first seen at start-up may have been set months ago
where events.ts_precision <> 'at_or_before' or events.source = 'nvml'
