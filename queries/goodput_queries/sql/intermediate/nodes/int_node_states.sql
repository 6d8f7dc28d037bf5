-- The states of nodes that have GPUs, reservations among them.
-- grain: none (sources may overlap)
-- state: up, down, maintenance, drained, powered_off, planned, reserved
-- end_ms: null: still so
-- materialised: full, since each pass over some hours joins it
-- skip_if_empty: raw.node_states, raw.reservations
-- change_tracking: start_ms, end_ms
with nodes as (select distinct cluster, node from intermediate.int_gpu_units),

states as (
    select nodes.cluster, nodes.node, states.state, states.start_ms, states.end_ms
    from nodes
    inner join staging.stg_node_states as states
        on nodes.cluster = states.cluster and (nodes.node = states.node or states.node = '*')
),

reserved as (
    select
        nodes.cluster,
        nodes.node,
        case when reservations.is_maintenance then 'maintenance' else 'reserved' end as state,
        reservations.start_ms,
        reservations.end_ms
    from staging.stg_reservations as reservations
    inner join nodes
        on coalesce(reservations.cluster, nodes.cluster) = nodes.cluster
        and list_contains(reservations.nodes, nodes.node)
)

select distinct * from states
union all
select distinct * from reserved
