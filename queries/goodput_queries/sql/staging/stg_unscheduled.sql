-- Nodes and times without a source of ownership (scheduler, label, Kubernetes): there the build infers ownership.
-- A scheduler covers its cluster from its first record on. Labels cover every node that ever had one: there a GPU
-- without a label is unallocated.
-- grain: cluster, host
-- host: the node by a name that telemetry or job events have for it, short or full
-- from_ms: the earliest reading or event; null: there is no reading yet
-- until_ms: from here on a source says who had the GPUs; null: none does
-- materialised: full, since most sites have no row, which spares them what infers ownership
-- change_tracking: all
with schedulers as (
    select cluster, to_ms(min(submit_at)) as since_ms from raw.job_runs group by cluster
),

series as (
    select gpu_uuid, min(first_ms) as first_ms from state.reading_series group by gpu_uuid
),

gpu_nodes as (
    select gpus.cluster, gpus.node, min(series.first_ms) as first_ms
    from staging.stg_gpus as gpus
    left join series using (gpu_uuid)
    group by gpus.cluster, gpus.node
),

event_hosts as (
    select
        coalesce(hosts.cluster, node_clusters.cluster, 'default') as cluster,
        hosts.host,
        any_value(node_clusters.known_as) as known_as,
        min(hosts.first_ms) as first_ms
    from state.event_hosts as hosts
    left join staging.stg_node_clusters as node_clusters on hosts.host = node_clusters.node
    where
        hosts.host is not null
        -- in a cluster with a scheduler, an unknown host is a container's name rather than another machine
        and (
            coalesce(hosts.cluster, node_clusters.cluster) is not null
            or not exists (select 1 from raw.job_runs)
        )
    group by 1, 2
),

-- one machine by its short and its full name
known_as as (
    select hosts.cluster, hosts.host, min(nodes.node) as node
    from event_hosts as hosts
    anti join gpu_nodes as same on hosts.cluster = same.cluster and hosts.host = same.node
    inner join gpu_nodes as nodes
        on hosts.cluster = nodes.cluster
        and split_part(lower(hosts.host), '.', 1) = split_part(lower(nodes.node), '.', 1)
        and (
            starts_with(lower(hosts.host) || '.', lower(nodes.node) || '.')
            or starts_with(lower(nodes.node), lower(hosts.host) || '.')
        )
    group by hosts.cluster, hosts.host
    having count(*) = 1
),

hosts as (
    select cluster, node as host, node, first_ms from gpu_nodes
    union all
    select cluster, host, coalesce(known_as.node, event_hosts.known_as, event_hosts.host), event_hosts.first_ms
    from event_hosts
    left join known_as using (cluster, host)
)

select
    hosts.cluster,
    hosts.host,
    any_value(hosts.node) as node,
    min(hosts.first_ms) as from_ms,
    any_value(schedulers.since_ms) as until_ms
from hosts
left join schedulers using (cluster)
anti join staging.stg_gpu_owners as labels on hosts.cluster = labels.cluster and hosts.node = labels.node
group by hosts.cluster, hosts.host
having any_value(schedulers.since_ms) is null or min(hosts.first_ms) < any_value(schedulers.since_ms)
