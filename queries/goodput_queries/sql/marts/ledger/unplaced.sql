-- Allocated time that placement cannot assign to a GPU, by hour: the scheduler reports no node (usual in exports),
-- more GPUs than its nodes had at the time, or a part of a GPU, and not which. It is not part of the ledger or its capacity: the scheduler's allocated
-- time is the ledger's plus this. Scope: window, cluster, model, team, user, run, partition.
-- grain: job_run_key, hour_ms
-- access: team
-- reason: no_node_list, no_such_gpu, part_of_gpu, ambiguous_time (start or end in an hour that came twice)
-- gpu_model: the model that the job requested, by its name in the cluster; null: unknown
-- gpu_ms: milliseconds of GPUs or instances, as the scheduler counts them
-- cost: null: the rate card has no price
with allocated as (
    select
        runs.cluster,
        runs.job_run_key,
        runs.gpus,
        lower(runs.gpu_type) as gpu_type,
        len(runs.nodes) = 0 as is_nowhere,
        runs.is_time_ambiguous,
        greatest(runs.start_ms, window_.from_ms) as start_ms,
        least(coalesce(runs.end_ms, window_.to_ms), window_.to_ms) as end_ms
    from intermediate.int_job_runs as runs
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where
        not runs.is_inferred
        and runs.gpus > 0
        and (runs.cluster, runs.job_id_raw, runs.submit_ms) not in (
            select (cluster, job_id_raw, submit_ms) from staging.stg_parts_of_gpus
        )
        and runs.start_ms < window_.to_ms
        and coalesce(runs.end_ms, window_.to_ms) > window_.from_ms
),

-- pods of a gang begin and end by themselves: what is allocated is their sum
in_parts as (
    select job_run_key
    from intermediate.int_job_runs
    semi join staging.stg_gangs_in_parts using (cluster, job_id_raw, submit_ms)
),

placed as (
    select
        holds.job_run_key,
        greatest(holds.start_ms, units.start_ms, window_.from_ms) as start_ms,
        least(coalesce(holds.end_ms, window_.to_ms), coalesce(units.end_ms, window_.to_ms), window_.to_ms) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    inner join intermediate.int_gpu_units as units
        on holds.gpu_uuid = units.gpu_uuid
        and holds.gpu_instance = units.gpu_instance
        and units.start_ms < coalesce(holds.end_ms, window_.to_ms)
        and coalesce(units.end_ms, window_.to_ms) > holds.start_ms
    where holds.start_ms < window_.to_ms and coalesce(holds.end_ms, window_.to_ms) > window_.from_ms
    union all
    -- who lost a GPU to a later start did not have it
    select
        conflicts.job_run_key,
        greatest(conflicts.start_ms, window_.from_ms),
        least(coalesce(conflicts.end_ms, window_.to_ms), window_.to_ms)
    from intermediate.int_hold_conflicts as conflicts
    inner join intermediate.int_cluster_windows as window_ using (cluster)
),

held as (
    select job_run_key, sum(end_ms - start_ms) as held_ms from placed where end_ms > start_ms group by job_run_key
),

-- what the scheduler lost track of ended when its node went down
lost as (
    select distinct holds.job_run_key
    from intermediate.int_holds as holds
    inner join intermediate.int_job_runs as runs using (job_run_key)
    where runs.end_ms is null and holds.end_ms is not null
),

short as (
    select allocated.*
    from allocated
    left join held using (job_run_key)
    anti join in_parts using (job_run_key)
    anti join lost using (job_run_key)
    where allocated.gpus * (allocated.end_ms - allocated.start_ms) > coalesce(held.held_ms, 0)
),

hours as (
    select *, unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
    from short
),

cells as (
    select * replace (greatest(start_ms, hour_ms) as start_ms, least(end_ms, hour_ms + one_hour_ms()) as end_ms)
    from hours
),

unplaced as (
    select
        cells.cluster,
        cells.job_run_key,
        cells.hour_ms,
        any_value(cells.gpu_type) as gpu_type,
        case
            when any_value(cells.is_time_ambiguous) then 'ambiguous_time'
            when any_value(cells.is_nowhere) then 'no_node_list'
            else 'no_such_gpu'
        end as reason,
        any_value(cells.gpus * (cells.end_ms - cells.start_ms)) - coalesce(sum(
            least(placed.end_ms, cells.end_ms) - greatest(placed.start_ms, cells.start_ms)
        ) filter (where placed.job_run_key is not null), 0)::bigint as gpu_ms
    from cells
    left join placed
        on cells.job_run_key = placed.job_run_key
        and placed.start_ms < cells.end_ms
        and placed.end_ms > cells.start_ms
    group by cells.cluster, cells.job_run_key, cells.hour_ms
),

-- shards and MPS that no GPU of their node has room for
of_parts as (
    select
        runs.cluster,
        runs.job_run_key,
        parts.gpus,
        greatest(runs.start_ms, window_.from_ms) as start_ms,
        least(coalesce(runs.end_ms, window_.to_ms), window_.to_ms) as end_ms
    from staging.stg_parts_of_gpus as parts
    inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
    inner join intermediate.int_cluster_windows as window_ using (cluster)
    where
        parts.gpus > 0
        and runs.job_run_key not in (
            select job_run_key from intermediate.int_parts_of_gpus where gpu_uuid is not null
        )
),

every as (
    select * from unplaced
    union all
    select
        cluster,
        job_run_key,
        hour_ms,
        null,
        'part_of_gpu',
        round(gpus * (least(end_ms, hour_ms + one_hour_ms()) - greatest(start_ms, hour_ms)))::bigint
    from (
        select *, unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) * one_hour_ms() as hour_ms
        from of_parts
        where end_ms > start_ms
    )
),

-- what a type is called in its cluster; without a type, where all GPUs are of one model
models as (
    select types.cluster, types.gpu_type, min(units.gpu_model) as gpu_model
    from (select distinct cluster, gpu_type from every) as types
    inner join (
        select distinct cluster, gpu_model from intermediate.int_gpu_units where gpu_model is not null
    ) as units
        on types.cluster = units.cluster and (types.gpu_type is null or is_model(units.gpu_model, types.gpu_type))
    group by types.cluster, types.gpu_type
    having count(*) = 1
)

select
    unplaced.* exclude (gpu_type),
    owners.* exclude (job_run_key, cluster, state),
    coalesce(models.gpu_model, unplaced.gpu_type) as gpu_model,
    prices.list_price_per_gpu_h,
    prices.factor,
    prices.price_per_gpu_h,
    unplaced.gpu_ms / 3600000.0 * prices.price_per_gpu_h::double as cost
from every as unplaced
left join models
    on unplaced.cluster = models.cluster and unplaced.gpu_type is not distinct from models.gpu_type
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_prices as prices on is_price_of(
    prices, unplaced.cluster, coalesce(models.gpu_model, unplaced.gpu_type), '', owners.partition, owners.qos,
    unplaced.hour_ms, unplaced.hour_ms + 1
)
where
    unplaced.gpu_ms <> 0
    and in_scope(
        unplaced.cluster, null, null, coalesce(models.gpu_model, unplaced.gpu_type),
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
    -- on no node, and no GPU of any
    and chosen_node() is null
    and chosen_gpu_uuid() is null
