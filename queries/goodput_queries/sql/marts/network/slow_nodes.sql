-- Nodes of slow communicators, with what else speaks for a slow link of theirs.
-- grain: cluster, node
-- skip_if_empty: marts.comm_bandwidth
-- communicators, slow_communicators: those with collectives large enough to be judged; of them the slow ones
-- least_ratio: the lowest bandwidth of what is expected, among the slow ones
-- link_trouble: of the node's ports, the worst of down, lost, errors
-- limited_communicators: of the slow ones those of which even the fastest operations are slow, in all sizes that are judged, two
--  or more, while others between the same nodes reach what is expected: traffic of others comes and goes, a limit stays
-- verdict: Confirmed (a port of it has trouble), Likely (all its communicators are slow, two or more, and others without
--  it are not; or one is limited), Not confirmed
-- run_key, run_id, job_name: of its slowest communicator
with judged as (
    select
        cluster, comm_id, unnest(node_names) as node, is_slow, of_expected_ratio, run_key, run_id, job_name,
        of_expected_ratio * p99_bytes_per_s / p50_bytes_per_s < threshold('slow_link_ratio') as is_limited,
        count_if(not is_slow) over (partition by cluster, node_names, ranks, operation, size_from_bytes) > 0 as is_reached
    from marts.comm_bandwidth
    where is_slow is not null
),

of_communicators as materialized (
    select
        cluster,
        node,
        comm_id,
        bool_or(is_slow) as is_slow,
        count(*) >= 2 and bool_and(is_limited) and bool_or(is_reached) as is_limited,
        min(of_expected_ratio) as least_ratio,
        any_value(columns(['run_key', 'run_id', 'job_name']))
    from judged
    group by cluster, node, comm_id
),

of_nodes as (
    select
        cluster,
        node,
        count(*) as communicators,
        count_if(is_slow)::bigint as slow_communicators,
        count_if(is_limited)::bigint as limited_communicators,
        min(least_ratio) filter (where is_slow) as least_ratio,
        min_by(columns(['run_key', 'run_id', 'job_name']), least_ratio) filter (where is_slow)
    from of_communicators
    group by cluster, node
),

fleet as (
    select cluster, count(distinct comm_id) filter (where not is_slow) as good_communicators
    from of_communicators
    group by cluster
),

links as (
    select
        cluster,
        node,
        case min(list_position(['down', 'lost', 'errors'], trouble))
            when 1 then 'down'
            when 2 then 'lost'
            when 3 then 'errors'
        end as link_trouble
    from marts.link_errors
    where trouble in ('down', 'lost', 'errors')
    group by cluster, node
)

select
    of_nodes.*,
    links.link_trouble,
    case
        when links.link_trouble is not null then 'Confirmed'
        when of_nodes.slow_communicators >= 2
            and of_nodes.slow_communicators = of_nodes.communicators
            and fleet.good_communicators > 0
            then 'Likely'
        when of_nodes.limited_communicators > 0 then 'Likely'
        else 'Not confirmed'
    end as verdict
from of_nodes
inner join fleet using (cluster)
left join links using (cluster, node)
where of_nodes.slow_communicators > 0
