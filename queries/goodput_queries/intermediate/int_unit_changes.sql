-- Every moment at which anything known of a unit changes, with what each layer says from then on. A layer's
-- intervals never overlap, so that carrying its last value forward tells its state at any moment: this
-- replaces range joins between millions of intervals.
-- grain: gpu_uuid, gpu_instance, at_ms
-- Each layer's column: null where the layer does not change, 0 (or false) where it ends, else its value.
with range as (
    -- idleness counts from 300 s on, so the range is read with that much on either side
    select
        coalesce(getvariable('build_from_ms')::bigint, 0) - threshold('idle_min_ms')::bigint as from_ms,
        coalesce(getvariable('build_to_ms')::bigint, 0) + threshold('idle_min_ms')::bigint as to_ms
),

clusters as (select * from intermediate.int_clusters),

units as (
    select
        units.cluster,
        units.node,
        units.gpu_uuid,
        units.gpu_instance,
        greatest(units.start_ms, range.from_ms) as start_ms,
        least(coalesce(units.end_ms, clusters.as_of_ms), clusters.as_of_ms, range.to_ms) as end_ms
    from intermediate.int_gpu_units as units
    inner join clusters using (cluster)
    cross join range
),

holds as (
    select
        holds.cluster,
        holds.gpu_uuid,
        holds.gpu_instance,
        holds.job_run_key,
        hash(holds.job_run_key) as hold_id,
        greatest(holds.start_ms, range.from_ms) as start_ms,
        least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms, range.to_ms) as end_ms
    from intermediate.int_holds as holds
    inner join clusters using (cluster)
    cross join range
    where
        holds.start_ms < range.to_ms
        and coalesce(holds.end_ms, clusters.as_of_ms) > range.from_ms
),

pieces as (
    select
        timeline.attempt_key,
        timeline.job_run_key,
        hash(timeline.attempt_key, timeline.category, timeline.phase) as piece_id,
        timeline.start_ms,
        coalesce(timeline.end_ms, range.to_ms) as end_ms
    from intermediate.int_run_timeline as timeline
    cross join range
    where timeline.start_ms < range.to_ms and coalesce(timeline.end_ms, range.to_ms) > range.from_ms
),

held_pieces as (
    select
        holds.gpu_uuid,
        holds.gpu_instance,
        pieces.piece_id,
        greatest(pieces.start_ms, holds.start_ms) as start_ms,
        least(pieces.end_ms, holds.end_ms) as end_ms
    from holds
    inner join pieces
        on holds.job_run_key = pieces.job_run_key
        and pieces.start_ms < holds.end_ms
        and pieces.end_ms > holds.start_ms
),

splits as (
    select
        splits.gpu_uuid as split_gpu_uuid,
        attempts.job_run_key,
        hash(splits.category) as split_id,
        splits.start_ms,
        splits.end_ms
    from intermediate.int_step_splits as splits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    cross join range
    where splits.start_ms < range.to_ms and splits.end_ms > range.from_ms
),

held_splits as (
    select
        holds.gpu_uuid,
        holds.gpu_instance,
        splits.split_id,
        greatest(splits.start_ms, holds.start_ms) as start_ms,
        least(splits.end_ms, holds.end_ms) as end_ms
    from holds
    inner join splits
        on holds.job_run_key = splits.job_run_key
        and coalesce(splits.split_gpu_uuid, holds.gpu_uuid) = holds.gpu_uuid
        and splits.start_ms < holds.end_ms
        and splits.end_ms > holds.start_ms
),

activity as (
    select activity.gpu_uuid, activity.gpu_instance, activity.is_active, activity.start_ms, activity.end_ms
    from intermediate.int_gpu_activity as activity
    cross join range
    where activity.start_ms < range.to_ms and activity.end_ms > range.from_ms
),

processes as (
    select
        gpu_uuid,
        processes = 0 as is_empty,
        to_ms(ts) as end_ms,
        lag(to_ms(ts)) over (partition by gpu_uuid order by ts) as start_ms
    from raw.gpu_processes
),

empties as (
    -- a reading of no process covers back to the one before it, at most a minute
    select gpu_uuid, greatest(start_ms, end_ms - 60000) as start_ms, end_ms
    from processes
    cross join range
    where is_empty and start_ms is not null and start_ms < range.to_ms and end_ms > range.from_ms
),

node_intervals as (
    select
        units.gpu_uuid,
        units.gpu_instance,
        hash(intervals.cluster, intervals.node, intervals.start_ms) as node_interval_id,
        greatest(intervals.start_ms, units.start_ms) as start_ms,
        least(coalesce(intervals.end_ms, units.end_ms), units.end_ms) as end_ms
    from intermediate.int_node_intervals as intervals
    inner join units using (cluster, node)
    where
        intervals.start_ms < units.end_ms and coalesce(intervals.end_ms, units.end_ms) > units.start_ms
),

changes as (
    select gpu_uuid, gpu_instance, unnest([start_ms, end_ms]) as at_ms, unnest([1, 0]) as in_inventory,
        null::ubigint as hold_id, null::ubigint as piece_id, null::ubigint as split_id,
        null::integer as activity, null::integer as emptiness, null::ubigint as node_interval_id
    from units
    where end_ms > start_ms
    union all by name
    select gpu_uuid, gpu_instance, unnest([start_ms, end_ms]) as at_ms, unnest([hold_id, 0::ubigint]) as hold_id
    from holds
    where end_ms > start_ms
    union all by name
    select gpu_uuid, gpu_instance, unnest([start_ms, end_ms]) as at_ms, unnest([piece_id, 0::ubigint]) as piece_id
    from held_pieces
    union all by name
    select gpu_uuid, gpu_instance, unnest([start_ms, end_ms]) as at_ms, unnest([split_id, 0::ubigint]) as split_id
    from held_splits
    union all by name
    select gpu_uuid, gpu_instance, unnest([start_ms, end_ms]) as at_ms,
        unnest([case when is_active then 2 else 1 end, 0]) as activity
    from activity
    union all by name
    select units.gpu_uuid, units.gpu_instance, unnest([empties.start_ms, empties.end_ms]) as at_ms,
        unnest([1, 0]) as emptiness
    from empties
    inner join units using (gpu_uuid)
    where empties.end_ms > empties.start_ms
    union all by name
    select gpu_uuid, gpu_instance, unnest([start_ms, end_ms]) as at_ms,
        unnest([node_interval_id, 0::ubigint]) as node_interval_id
    from node_intervals
    where end_ms > start_ms
)

select
    gpu_uuid,
    gpu_instance,
    at_ms,
    max(in_inventory) as in_inventory,
    max(hold_id) as hold_id,
    max(piece_id) as piece_id,
    max(split_id) as split_id,
    max(activity) as activity,
    max(emptiness) as emptiness,
    max(node_interval_id) as node_interval_id
from changes
group by gpu_uuid, gpu_instance, at_ms
