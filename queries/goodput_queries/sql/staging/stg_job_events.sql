-- Job events, with times in epoch ms.
-- grain: none (an event as it was written)
-- start_ms: ts - dur_s of a span, else ts
-- end_ms: ts
-- attempt: null where the job does not number them (temp.job_events works it out)
-- rank: 0 where the job does not say
-- run_id: a run without a name, on a node without a scheduler, is named after the node
-- host: as the scheduler names the node, with or without its domain
select
    events.rowid as event_id,
    events.* exclude (cluster, run_id, rank, host, extra, load_sequence),
    coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
    case
        when events.run_id = '' and hosts.host is not null and to_ms(events.ts) < coalesce(hosts.until_ms, forever_ms())
            then 'unnamed on ' || hosts.node
        else events.run_id
    end as run_id,
    coalesce(events.rank, 0) as rank,
    coalesce(node_clusters.known_as, events.host) as host,
    (epoch_us(events.ts) - coalesce(cast(round(events.dur_s * 1e6) as bigint), 0)) // 1000 as start_ms,
    to_ms(events.ts) as end_ms,
    coalesce(events.load_sequence, 0) as load_sequence
from raw.job_events as events
left join staging.stg_node_clusters as node_clusters on events.host = node_clusters.node
left join staging.stg_unscheduled as hosts
    on coalesce(events.cluster, node_clusters.cluster, 'default') = hosts.cluster
    and events.host = hosts.host
