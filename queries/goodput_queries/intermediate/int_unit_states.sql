-- The state of every layer of a unit between one change and the next.
-- grain: gpu_uuid, gpu_instance, start_ms
-- hold_id, piece_id, split_id, node_interval_id: 0: the layer says nothing
-- activity: 2 active, 1 idle, 0 no telemetry
-- stretch_ms: length of the unbroken stretch of no activity within one hold that this state is part of
with changes as (select * from intermediate.int_unit_changes),

filled as (
    select
        gpu_uuid,
        gpu_instance,
        at_ms as start_ms,
        lead(at_ms) over unit as end_ms,
        coalesce(last_value(in_inventory ignore nulls) over so_far, 0) as in_inventory,
        coalesce(last_value(hold_id ignore nulls) over so_far, 0) as hold_id,
        coalesce(last_value(piece_id ignore nulls) over so_far, 0) as piece_id,
        coalesce(last_value(split_id ignore nulls) over so_far, 0) as split_id,
        coalesce(last_value(activity ignore nulls) over so_far, 0) as activity,
        coalesce(last_value(emptiness ignore nulls) over so_far, 0) as emptiness,
        coalesce(last_value(node_interval_id ignore nulls) over so_far, 0) as node_interval_id
    from changes
    window
        unit as (partition by gpu_uuid, gpu_instance order by at_ms),
        so_far as (
            partition by gpu_uuid, gpu_instance order by at_ms
            rows between unbounded preceding and current row
        )
),

inside as (
    select * from filled where in_inventory = 1 and end_ms is not null
),

stretches as (
    select
        *,
        count_if(is_new) over (
            partition by gpu_uuid, gpu_instance order by start_ms
            rows between unbounded preceding and current row
        ) as stretch
    from (
        select
            *,
            (hold_id, activity) is distinct from lag((hold_id, activity)) over (
                partition by gpu_uuid, gpu_instance order by start_ms
            ) as is_new
        from inside
    )
)

select
    * exclude (stretch, is_new, in_inventory),
    sum(end_ms - start_ms) over (partition by gpu_uuid, gpu_instance, stretch) as stretch_ms
from stretches
