-- The states of nodes that have GPUs, reservations among them.
-- grain: none (sources may overlap)
-- state: up, down, maintenance, drained, powered_off, planned, reserved
-- source, reason: who reports it, and why; null: a reservation
-- end_ms: null: still so
-- materialised: full, since each pass over some hours joins it
-- skip_if_empty: raw.node_states, raw.reservations
-- change_tracking: start_ms, end_ms
with nodes as (select distinct cluster, node from intermediate.int_gpu_units),

watched as (
    select cluster, start_ms, coalesce(end_ms, forever_ms()) as end_ms
    from staging.stg_node_states
    where node = '*'
),

-- a listing of nodes shows a moment: it lasts to the next one, where that is near or shows the same
followed as (
    select
        *,
        source = 'slurm' and end_ms = start_ms as is_listed,
        lead(state) over of_listing as next_state,
        lead(start_ms) over of_listing as next_ms
    from staging.stg_node_states
    window of_listing as (partition by source, cluster, node, end_ms = start_ms order by start_ms)
),

listed as (
    select
        source,
        cluster,
        node,
        state,
        reason,
        start_ms,
        case
            when
                is_listed
                and (next_ms - start_ms <= one_hour_ms() or (state = next_state and state in ('down', 'drained')))
                and (state = next_state or not exists (
                    from watched
                    where
                        watched.cluster = followed.cluster
                        and followed.start_ms between watched.start_ms and watched.end_ms
                ))
                then next_ms
            else end_ms
        end as end_ms
    from followed
),

states as (
    select nodes.cluster, nodes.node, states.state, states.source, states.reason, states.start_ms, states.end_ms
    from nodes
    inner join listed as states
        on nodes.cluster = states.cluster and (nodes.node = states.node or states.node = '*')
),

reserved as (
    select
        nodes.cluster,
        nodes.node,
        case when reservations.is_maintenance then 'maintenance' else 'reserved' end as state,
        null as source,
        null as reason,
        reservations.start_ms,
        reservations.end_ms
    from staging.stg_reservations as reservations
    inner join nodes
        on coalesce(reservations.cluster, nodes.cluster) = nodes.cluster
        and list_contains(reservations.nodes, nodes.node)
)

select * from states
union all
select distinct * from reserved
