-- State of each node over time in intervals that do not overlap: its state, whether a source reports it, and why its
-- free GPUs stay free.
-- grain: cluster, node, start_ms
-- state: the first of down, maintenance, drained, powered_off that holds; null: none
-- is_watched: a source reports states of the node
-- is_planned: kept empty for a bigger job
-- is_stranded: all CPUs of the node are allocated
-- has_demand: a job waits (int_job_runs.waits) that could use this node: its partition, requested and excluded nodes and
--  features, and this kind of GPU, or a MIG profile that such a GPU could give
-- demanded_profiles: what eligible pending jobs ask of MIG instances: ',1g.10gb,3g.40gb,'; '*' where any will do
-- is_demand_known: the accounting says since when jobs were eligible
-- materialised: hourly, since it needs a pass over the job runs of the time
-- skip_if_empty: intermediate.int_node_states, intermediate.int_job_runs where waits is not null or cpus > 0
-- change_tracking: start_ms, end_ms
with nodes as (select * from intermediate.int_node_partitions),

job_runs as (
    select
        *,
        greatest(start_ms, build_from_ms()) as held_from_ms,
        least(coalesce(end_ms, build_to_ms()), build_to_ms()) as held_to_ms
    from intermediate.int_job_runs
    where coalesce(eligible_ms, start_ms) < build_to_ms() and coalesce(record_end_ms, build_to_ms()) > build_from_ms()
),

-- waiting jobs by what they ask for: merged before they meet the nodes, of which there are thousands
asked as (
    select distinct
        cluster,
        unnest(string_split(partition, ',')) as partition,
        lower(gpu_type_requested) as gpu_type,
        requested_nodes,
        excluded_nodes,
        feature_sets,
        greatest(wait.start_ms, build_from_ms()) as start_ms,
        least(coalesce(wait.end_ms, build_to_ms()), build_to_ms()) as end_ms
    from (select *, unnest(waits) as wait from job_runs)
),

asked_marked as (
    select
        *,
        coalesce(start_ms > max(end_ms) over (
            partition by cluster, partition, gpu_type, requested_nodes, excluded_nodes, feature_sets
            order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from asked
    where end_ms > start_ms
),

asked_stretches as (
    select
        cluster, partition, gpu_type, requested_nodes, excluded_nodes, feature_sets,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms
    from (
        select
            *,
            count_if(is_new) over (
                partition by cluster, partition, gpu_type, requested_nodes, excluded_nodes, feature_sets
                order by start_ms, end_ms
                rows unbounded preceding
            ) as stretch
        from asked_marked
    )
    group by cluster, partition, gpu_type, requested_nodes, excluded_nodes, feature_sets, stretch
),

-- a model gives the profiles that one of its GPUs was cut into
profiles as (
    select distinct cluster, lower(gpu_model) as gpu_model, lower(mig_profile) as profile
    from intermediate.int_gpu_units
    where mig_profile is not null
),

types as (
    select distinct
        cluster,
        gpu_type,
        -- also 'a100_3g.20gb', as Slurm finds it out
        nullif(regexp_extract(gpu_type, '(^|[_.-])([1-7]g\.[0-9]+gb[+.\w]*)$', 2), '') as profile
    from asked_stretches
),

-- each model is compared with each kind once: a pattern takes longer to make than to match
kinds as materialized (
    select models.cluster, models.gpu_model, types.gpu_type, unnest(['', '*']) as of_instance
    from (select distinct cluster, gpu_model from nodes) as models
    inner join types using (cluster)
    where types.gpu_type is null
    union all
    select models.cluster, models.gpu_model, types.gpu_type, ''
    from (select distinct cluster, gpu_model from nodes) as models
    inner join types using (cluster)
    where types.profile is null and (models.gpu_model is null or is_model(models.gpu_model, types.gpu_type))
    union all
    select profiles.cluster, profiles.gpu_model, types.gpu_type, unnest(['', profiles.profile])
    from profiles
    inner join types using (cluster, profile)
),

demand as (
    select distinct
        nodes.cluster,
        nodes.node,
        kinds.of_instance,
        asked.start_ms,
        asked.end_ms
    from asked_stretches as asked
    inner join nodes on asked.cluster = nodes.cluster and asked.partition = nodes.partition
    inner join kinds
        on nodes.cluster = kinds.cluster
        and nodes.gpu_model is not distinct from kinds.gpu_model
        and asked.gpu_type is not distinct from kinds.gpu_type
    where can_use_node(nodes.node, nodes.features, asked.requested_nodes, asked.excluded_nodes, asked.feature_sets)
),

held_cpus as (
    select cluster, unnest(nodes) as node, cpus / len(nodes) as cpus, held_from_ms, held_to_ms
    from job_runs
    where start_ms is not null and held_to_ms > held_from_ms and cpus > 0 and len(nodes) > 0
),

cpu_changes as (
    select cluster, node, unnest([held_from_ms, held_to_ms]) as at_ms, unnest([cpus, -cpus]) as cpus
    from held_cpus
),

cpu_levels as (
    select
        cluster,
        node,
        at_ms,
        sum(sum(cpus)) over (partition by cluster, node order by at_ms rows unbounded preceding) as held_cpus,
        lead(at_ms) over (partition by cluster, node order by at_ms) as next_ms
    from cpu_changes
    group by cluster, node, at_ms
),

stranded as (
    select levels.cluster, levels.node, 'stranded' as state, levels.at_ms as start_ms, levels.next_ms as end_ms
    from cpu_levels as levels
    inner join (select distinct cluster, node, cpus from nodes) as sizes using (cluster, node)
    -- half a core of slack: shares of uneven jobs are divided evenly here
    where levels.held_cpus > sizes.cpus - 0.5 and sizes.cpus > 0
),

demand_marked as (
    select
        *,
        coalesce(start_ms > max(end_ms) over (
            partition by cluster, node, of_instance order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ), true) as is_new
    from demand
),

demand_stretches as (
    select
        cluster,
        node,
        case when of_instance = '' then 'demand' else 'demand:' || of_instance end as state,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms
    from (
        select
            *,
            count_if(is_new) over (
                partition by cluster, node, of_instance order by start_ms, end_ms rows unbounded preceding
            ) as stretch
        from demand_marked
    )
    group by cluster, node, of_instance, stretch
),

facts as (
    select
        cluster,
        node,
        state,
        greatest(start_ms, build_from_ms()) as start_ms,
        least(coalesce(end_ms, build_to_ms()), build_to_ms()) as end_ms
    from (
        select cluster, node, state, start_ms, end_ms
        from intermediate.int_node_states
        union all
        from demand_stretches
        union all
        from stranded
    )
    where start_ms < build_to_ms() and coalesce(end_ms, build_to_ms()) > build_from_ms()
),

bounds as (
    select cluster, node, start_ms as at_ms from facts
    union
    select cluster, node, end_ms from facts
    union
    -- cut at hours, so that an hour can be replaced
    select distinct
        cluster, node, unnest(range(start_ms // one_hour_ms() + 1, (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms()
    from facts
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
        cells.*,
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
        bool_or(facts.state = 'demand') as has_demand,
        string_agg(distinct facts.state[8:], ',' order by facts.state[8:]) filter (facts.state like 'demand:%') as profiles
    from cells
    inner join facts
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
    described.start_ms // one_hour_ms() * one_hour_ms() as hour_ms,
    described.* exclude (cluster, node, profiles),
    ',' || described.profiles || ',' as demanded_profiles,
    known.is_demand_known
from described
inner join (select distinct cluster, is_demand_known from nodes) as known using (cluster)
