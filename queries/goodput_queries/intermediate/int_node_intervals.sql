-- What is known of each node over time, cut so that nothing overlaps: its state, whether the scheduler
-- watched it, and why its free GPUs stay free.
-- grain: cluster, node, start_ms
-- state: the first of down, maintenance, drained, powered_off that holds; null: none
-- is_watched: a source would have told of a state
-- is_planned: kept empty for a bigger job
-- is_stranded: all CPUs of the node are held
-- has_demand: an eligible pending job asks for this kind of GPU in a partition of the node
-- is_demand_known: the accounting says since when jobs were eligible
-- end_ms: null: still so
-- materialised: full, since each GPU of the node joins it
-- dirties: start_ms, end_ms
with nodes as (
    select distinct cluster, node, lower(gpu_model) as gpu_model from intermediate.int_gpu_units
),

job_runs as (select * from staging.stg_job_runs),

open_end as (select cluster, as_of_ms from intermediate.int_clusters),

states as (
    select nodes.cluster, nodes.node, states.state, states.start_ms, states.end_ms
    from (select distinct cluster, node from nodes) as nodes
    inner join staging.stg_node_states as states
        on nodes.cluster = states.cluster and (nodes.node = states.node or states.node = '*')
),

reserved as (
    select
        nodes.cluster,
        nodes.node,
        case when reservations.flags ilike '%MAINT%' then 'maintenance' else 'reserved' end as state,
        to_ms(reservations.start_at) as start_ms,
        to_ms(reservations.end_at) as end_ms
    from raw.reservations as reservations
    inner join (select distinct cluster, node from nodes) as nodes
        on coalesce(reservations.cluster, nodes.cluster) = nodes.cluster
        and list_contains(reservations.nodes, nodes.node)
),

partition_nodes as (
    select distinct coalesce(cluster, 'default') as cluster, node, unnest(partitions) as partition
    from raw.nodes
    union
    -- where no source lists a partition's nodes, those that ran its jobs are certainly in it
    select distinct cluster, unnest(nodes) as node, partition
    from job_runs
    where cluster not in (select cluster from raw.nodes where cluster is not null and partitions is not null)
),

-- waiting jobs by what they ask for: merged before they meet the nodes, of which there are thousands
asked as (
    select distinct
        cluster,
        unnest(string_split(partition, ',')) as partition,
        lower(gpu_type_requested) as gpu_type,
        eligible_ms as start_ms,
        coalesce(start_ms, record_end_ms, 9223372036854775807) as end_ms
    from job_runs
    where gpus_requested > 0 and eligible_ms is not null
),

asked_marked as (
    select
        *,
        coalesce(start_ms > max(end_ms) over (
            partition by cluster, partition, gpu_type order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from asked
    where end_ms > start_ms
),

asked_stretches as (
    select cluster, partition, gpu_type, min(start_ms) as start_ms, max(end_ms) as end_ms
    from (
        select
            *,
            count_if(is_new) over (
                partition by cluster, partition, gpu_type order by start_ms, end_ms
                rows between unbounded preceding and current row
            ) as stretch
        from asked_marked
    )
    group by cluster, partition, gpu_type, stretch
),

demand as (
    select distinct
        nodes.cluster,
        nodes.node,
        'demand' as state,
        asked.start_ms,
        asked.end_ms
    from asked_stretches as asked
    inner join partition_nodes
        on asked.cluster = partition_nodes.cluster and asked.partition = partition_nodes.partition
    inner join nodes
        on partition_nodes.cluster = nodes.cluster and partition_nodes.node = nodes.node
    where
        asked.gpu_type is null or nodes.gpu_model is null or is_model(nodes.gpu_model, asked.gpu_type)
),

cpu_changes as (
    select cluster, unnest(nodes) as node, start_ms as at_ms, cpus / len(nodes) as cpus
    from job_runs
    where start_ms is not null and cpus > 0 and len(nodes) > 0
    union all
    select cluster, unnest(nodes), end_ms, -cpus / len(nodes)
    from job_runs
    where start_ms is not null and end_ms is not null and cpus > 0 and len(nodes) > 0
),

cpu_levels as (
    select
        cluster,
        node,
        at_ms,
        sum(sum(cpus)) over (
            partition by cluster, node order by at_ms
            rows between unbounded preceding and current row
        ) as held_cpus,
        lead(at_ms) over (partition by cluster, node order by at_ms) as next_ms
    from cpu_changes
    group by cluster, node, at_ms
),

stranded as (
    select levels.cluster, levels.node, 'stranded' as state, levels.at_ms as start_ms, levels.next_ms as end_ms
    from cpu_levels as levels
    inner join raw.nodes as sizes
        on levels.node = sizes.node and levels.cluster = coalesce(sizes.cluster, levels.cluster)
    -- half a core of slack: shares of uneven jobs are divided evenly here
    where levels.held_cpus > sizes.cpus - 0.5 and sizes.cpus > 0
),

demand_marked as (
    select
        *,
        coalesce(start_ms > max(end_ms) over (
            partition by cluster, node order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from demand
),

demand_stretches as (
    select
        cluster,
        node,
        'demand' as state,
        min(start_ms) as start_ms,
        nullif(max(end_ms), 9223372036854775807) as end_ms
    from (
        select
            *,
            count_if(is_new) over (
                partition by cluster, node order by start_ms, end_ms
                rows between unbounded preceding and current row
            ) as stretch
        from demand_marked
    )
    group by cluster, node, stretch
),

facts as (
    select * from states
    union all
    select * from reserved
    union all
    select * from demand_stretches
    union all
    select * from stranded
),

closed_facts as (
    select
        facts.cluster,
        facts.node,
        facts.state,
        facts.start_ms,
        facts.end_ms is null as is_open,
        coalesce(facts.end_ms, greatest(facts.start_ms + 1, open_end.as_of_ms)) as end_ms
    from facts
    inner join open_end using (cluster)
),

bounds as (
    select cluster, node, start_ms as at_ms from closed_facts
    union
    select cluster, node, end_ms from closed_facts
),

cells as (
    select
        cluster,
        node,
        at_ms as start_ms,
        lead(at_ms) over (partition by cluster, node order by at_ms) as end_ms
    from bounds
),

described as (
    select
        cells.cluster,
        cells.node,
        cells.start_ms,
        cells.end_ms,
        bool_or(facts.is_open and facts.end_ms = cells.end_ms) as is_open,
        case
            when bool_or(facts.state = 'down') then 'down'
            when bool_or(facts.state = 'maintenance') then 'maintenance'
            when bool_or(facts.state = 'drained') then 'drained'
            when bool_or(facts.state = 'powered_off') then 'powered_off'
        end as state,
        bool_or(facts.state in ('up', 'down', 'maintenance', 'drained', 'powered_off', 'planned')) as is_watched,
        bool_or(facts.state = 'reserved') as is_reserved,
        bool_or(facts.state = 'planned') as is_planned,
        bool_or(facts.state = 'stranded') as is_stranded,
        bool_or(facts.state = 'demand') as has_demand
    from cells
    inner join closed_facts as facts
        on cells.cluster = facts.cluster
        and cells.node = facts.node
        and facts.start_ms <= cells.start_ms
        and facts.end_ms >= cells.end_ms
    where cells.end_ms is not null
    group by all
)

select
    described.cluster,
    described.node,
    described.start_ms,
    case when not described.is_open then described.end_ms end as end_ms,
    described.state,
    described.is_watched,
    described.is_reserved,
    described.is_planned,
    described.is_stranded,
    described.has_demand,
    exists (
        select 1 from job_runs
        where job_runs.cluster = described.cluster and job_runs.eligible_ms is not null
    ) as is_demand_known
from described
