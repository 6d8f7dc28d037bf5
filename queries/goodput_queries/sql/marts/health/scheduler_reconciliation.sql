-- The scope's GPU-seconds in the scheduler's own units, where each gres/gpu counts 1 (a MIG instance too), for
-- comparison with sreport. Job runs count from max(start, submit), so that resized records are not counted twice.
-- grain: cluster
-- held_gpu_s: allocated; down_gpu_s, drained_gpu_s: node states outside of holds are sreport's Down
with held as (
    select
        runs.cluster,
        sum(
            runs.gpus * greatest(
                0,
                least(coalesce(runs.end_ms, window_.to_ms), window_.to_ms) - greatest(runs.start_ms, window_.from_ms)
            )
        ) as held_ms
    from intermediate.int_job_runs as runs
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where runs.start_ms is not null and runs.gpus > 0 and not runs.is_inferred
    group by all
),

slots as (
    -- an instance counts as one GPU; the rest of a MIG GPU is nothing the scheduler knows
    select
        units.cluster,
        units.node,
        greatest(units.start_ms, window_.from_ms) as start_ms,
        least(coalesce(units.end_ms, window_.to_ms), window_.to_ms) as end_ms
    from intermediate.int_gpu_units as units
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where units.gpu_instance <> 'rest'
),

capacity as (
    select cluster, sum(greatest(0, end_ms - start_ms)) as capacity_ms from slots group by all
),

states as (
    select
        slots.cluster,
        intervals.state,
        sum(
            greatest(0, least(coalesce(intervals.end_ms, slots.end_ms), slots.end_ms)
                - greatest(intervals.start_ms, slots.start_ms))
        ) as state_ms
    from slots
    inner join intermediate.int_node_intervals as intervals using (cluster, node)
    where intervals.state is not null
    group by all
)

select
    cluster,
    coalesce(capacity.capacity_ms, 0) / 1000.0 as capacity_gpu_s,
    coalesce(held.held_ms, 0) / 1000.0 as held_gpu_s,
    coalesce(sum(states.state_ms) filter (where states.state = 'down'), 0) / 1000.0 as down_gpu_s,
    coalesce(sum(states.state_ms) filter (where states.state in ('drained', 'maintenance')), 0) / 1000.0
        as drained_gpu_s
from capacity
full join held using (cluster)
left join states using (cluster)
group by cluster, capacity.capacity_ms, held.held_ms
