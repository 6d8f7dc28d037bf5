-- GPUs and MIG instances that are not allocated at the end of the scope's window, by what a job could do with them: free
-- capacity in schedulable blocks, and why the rest is of no use. A node of several partitions is in each of them.
-- grain: cluster, partition, gpu_model, mig_profile, why
-- evaluated: first
-- partition: null: no source lists it
-- mig_profile: null for whole GPUs
-- why: why a job can, or cannot, have them
-- is_schedulable: a job can have them now
-- units: number of GPUs, or of MIG instances
-- blocks: number of blocks: whole free nodes, or nodes with a part that is free; null where nothing is schedulable
-- largest_block: the most that one job can have: all whole free nodes together, else the free part of one node
-- largest_rack_block: the most on whole free nodes of one rack; null where the inventory has no racks
-- waiting_jobs: number of job runs that wait for such GPUs in the partition; smallest_request: the fewest GPUs that one of
--  them asks for
with units as (
    select
        states.*,
        racks.rack,
        count(*) over of_node as on_node,
        count(*) filter (where states.category in ('idle_with_demand', 'idle_no_demand')) over of_node as free_on_node
    from marts.unit_states as states
    left join staging.stg_node_racks as racks using (cluster, node)
    window of_node as (partition by states.cluster, states.node)
),

unallocated as (
    select
        *,
        case
            when category in ('idle_with_demand', 'idle_no_demand') and gpu_instance <> '' then 'MIG instance'
            when category in ('idle_with_demand', 'idle_no_demand') and free_on_node = on_node then 'Whole node'
            when category in ('idle_with_demand', 'idle_no_demand') then 'Part of a node'
            when category = 'stranded' and gpu_instance = 'rest' then 'Rest of a MIG GPU'
            when category = 'stranded' then 'CPUs or memory of the node allocated'
            when category = 'reserved_idle' then 'Reserved'
            when category = 'planned' then 'Planned for a larger job'
            when category = 'drained' then 'Node drained'
            when category = 'down' then 'Node down'
            when category = 'maintenance' then 'Node in maintenance'
            when category = 'powered_off' then 'Node powered off'
            else 'Node state not known'
        end as why
    from units
    where category is null or "group" in ('free', 'not_available')
),

placed as (
    select unallocated.*, partitions.partition
    from unallocated
    left join (
        select distinct cluster, node, partition from intermediate.int_node_partitions
    ) as partitions using (cluster, node)
),

of_nodes as (
    select cluster, partition, gpu_model, mig_profile, why, rack, node, count(*) as units
    from placed
    group by all
),

of_racks as (
    select cluster, partition, gpu_model, mig_profile, why, max(units) as largest_rack_block
    from (
        select cluster, partition, gpu_model, mig_profile, why, rack, sum(units)::bigint as units
        from of_nodes
        where why = 'Whole node' and rack is not null
        group by all
    )
    group by all
),

sums as (
    select
        cluster,
        partition,
        gpu_model,
        mig_profile,
        why,
        why in ('Whole node', 'Part of a node', 'MIG instance') as is_schedulable,
        sum(units)::bigint as units,
        count(*) as nodes,
        max(units) as most_on_a_node
    from of_nodes
    group by all
),

waiting as (
    select
        runs.job_run_key,
        runs.cluster,
        unnest(string_split(runs.partition, ',')) as partition,
        runs.gpu_type_requested as gpu_type,
        runs.gpus_requested
    from (select *, unnest(waits) as wait from intermediate.int_job_runs) as runs
    inner join (select distinct cluster, at_ms from units) as ends using (cluster)
    where runs.wait.start_ms <= ends.at_ms and coalesce(runs.wait.end_ms, forever_ms()) > ends.at_ms
),

demand as (
    select
        sums.cluster,
        sums.partition,
        sums.gpu_model,
        sums.mig_profile,
        count(distinct waiting.job_run_key) as waiting_jobs,
        min(waiting.gpus_requested) as smallest_request
    from (select distinct cluster, partition, gpu_model, mig_profile from sums) as sums
    inner join waiting
        on sums.cluster = waiting.cluster
        and sums.partition = waiting.partition
        and (
            waiting.gpu_type is null
            or lower(waiting.gpu_type) = lower(sums.mig_profile)
            or sums.mig_profile is null and is_model(sums.gpu_model, waiting.gpu_type)
        )
    group by all
)

select
    sums.* exclude (most_on_a_node),
    case when sums.is_schedulable then sums.nodes end as blocks,
    case
        when sums.why = 'Whole node' then sums.units
        when sums.is_schedulable then sums.most_on_a_node
    end as largest_block,
    of_racks.largest_rack_block,
    coalesce(demand.waiting_jobs, 0) as waiting_jobs,
    demand.smallest_request
from sums
left join of_racks
    on sums.cluster = of_racks.cluster
    and sums.partition is not distinct from of_racks.partition
    and sums.gpu_model is not distinct from of_racks.gpu_model
    and sums.mig_profile is not distinct from of_racks.mig_profile
    and sums.why = of_racks.why
left join demand
    on sums.cluster = demand.cluster
    and sums.partition is not distinct from demand.partition
    and sums.gpu_model is not distinct from demand.gpu_model
    and sums.mig_profile is not distinct from demand.mig_profile
