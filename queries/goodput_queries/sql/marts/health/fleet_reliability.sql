-- How often nodes with GPUs fail, and for how long, by cluster, in the scope's window.
-- grain: cluster
-- evaluated: first
-- nodes: number of nodes; node_ms: their time in the inventory
-- failures: outages that began in the window with a node down; a node counts once for faults at one time
-- down_ms: time down; available_ratio: 1 - down / node time
-- mtbf_s: time between failures of a node: time not down / failures; mtbf_low_s, mtbf_high_s: its exact 95 % Poisson
--  interval; null: no failure, or the interval is open
-- mttr_s: mean time to repair of the outages that are over
-- has_states: a source reports node states of the cluster: without one, no failure proves nothing
with clusters as (
    select * from intermediate.int_clusters
    where in_cluster(cluster)
),

stays as (
    select
        units.cluster,
        scope_start(min(coalesce(units.start_ms, clusters.first_ms))) as start_ms,
        scope_end(max(least(coalesce(units.end_ms, clusters.as_of_ms), clusters.as_of_ms))) as end_ms
    from intermediate.int_gpu_units as units
    inner join clusters using (cluster)
    where in_place(units.cluster, units.node, units.gpu_uuid, units.gpu_model)
    group by units.cluster, units.node
),

nodes as (
    select cluster, count(*) as nodes, sum(end_ms - start_ms)::bigint as node_ms
    from stays
    where end_ms > start_ms
    group by cluster
),

outages as (
    select
        cluster,
        count(*) filter (where start_at >= from_ms(scope_from_ms())) as failures,
        sum(outage_ms)::bigint as down_ms,
        avg(epoch_ms(end_at) - epoch_ms(start_at)) / 1000.0 as mttr_s
    from marts.node_outages
    where state = 'down'
    group by cluster
),

watched as (
    select distinct cluster from staging.stg_node_states
),

counted as (
    select
        nodes.*,
        watched.cluster is not null as has_states,
        case when watched.cluster is not null then coalesce(outages.failures, 0) end as failures,
        case when watched.cluster is not null then coalesce(outages.down_ms, 0) end as down_ms,
        outages.mttr_s
    from nodes
    left join outages using (cluster)
    left join watched using (cluster)
)

select
    * exclude (mttr_s),
    1 - down_ms / nullif(node_ms, 0) as available_ratio,
    (node_ms - down_ms) / 1000.0 / nullif(failures, 0) as mtbf_s,
    (node_ms - down_ms) / 1000.0 / poisson_high(failures) as mtbf_low_s,
    (node_ms - down_ms) / 1000.0 / nullif(poisson_low(failures), 0) as mtbf_high_s,
    mttr_s
from counted
