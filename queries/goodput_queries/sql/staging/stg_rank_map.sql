-- Ranks of communicators with their processes, as NCCL reports them. A node that is an address (RAS has no names) gets
-- the name that another source has for the same rank and process of the same communicator, or, in the communicator of
-- all ranks, the name in the events of a job with the same rank and process.
-- The Inspector cuts hashes to 16 characters, "0x" included; the others do not.
-- grain: source, comm_id, rank, address, pid
-- node: null: only the address is known
-- is_world: the largest communicator of its process, whose ranks are the job's global ranks
with rank_map as (
    select
        *,
        regexp_full_match(node, '[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:%a-z]*') as is_address,
        ranks = max(ranks) over (partition by source, cluster, node, pid) as is_world
    from raw.rank_map
),

addresses as (select * from rank_map where is_address),

named as (
    select cluster, left(comm_id, 16) as comm_start, rank, pid, node from rank_map where not is_address
    union
    select cluster, comm_id as comm_start, rank, pid, node
    from raw.collectives
    where comm_id in (select left(comm_id, 16) from addresses)
),

reported as (
    select distinct cluster, rank, pid, host as node, min(ts) as first_at, max(ts) as last_at
    from raw.job_events
    where rank is not null and pid is not null and host is not null
    group by cluster, rank, pid, host, run_id, attempt
),

pairs as (
    select addresses.cluster, addresses.node as address, named.node
    from addresses
    inner join named
        on left(addresses.comm_id, 16) = named.comm_start
        and addresses.rank = named.rank
        and addresses.pid = named.pid
        and coalesce(addresses.cluster = named.cluster, true)
    union
    select addresses.cluster, addresses.node as address, reported.node
    from addresses
    inner join reported
        on addresses.rank = reported.rank
        and addresses.pid = reported.pid
        and coalesce(addresses.cluster = reported.cluster, true)
        and addresses.seen_at between reported.first_at - interval 5 minute and reported.last_at + interval 5 minute
    where addresses.is_world
),

names as (
    select cluster, address, any_value(node) as node
    from pairs
    group by cluster, address
    having count(distinct node) = 1
)

select
    coalesce(rank_map.cluster, node_clusters.cluster, 'default') as cluster,
    rank_map.* exclude (cluster, node, pid, seen_at, load_sequence, is_address),
    rank_map.node as address,
    coalesce(
        node_clusters.known_as, case when rank_map.is_address then names.node else rank_map.node end
    ) as node,
    nullif(rank_map.pid, 0) as pid,
    to_ms(rank_map.seen_at) as seen_ms
from rank_map
left join names
    on rank_map.is_address
    and rank_map.node = names.address
    and rank_map.cluster is not distinct from names.cluster
left join staging.stg_node_clusters as node_clusters
    on node_clusters.node = case when rank_map.is_address then names.node else rank_map.node end
