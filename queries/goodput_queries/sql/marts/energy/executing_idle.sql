-- Executing idle: allocated time of whole GPUs in which a job's program was loaded (memory in use) and nothing ran, by run;
-- and what the GPUs drew. Start-up, restore, suspension and teardown are left out, and without job events what is before the
-- first activity, at most ten minutes.
-- grain: cluster, run_key, gpu_model
-- evaluated: first
-- skip_if_empty: intermediate.int_gpu_metrics
-- access: team
-- held_ms: allocated time with readings of memory; idle_ms: of it executing idle; idle_ratio: idle_ms / held_ms
-- power_w: of one GPU, mean of ten minutes that were all idle, with a power reading; null: none has
-- energy_kwh: of these ten minutes; measured_ms: their time
with holds as materialized (
    select
        holds.cluster,
        holds.gpu_uuid,
        units.gpu_model,
        holds.job_run_key,
        owners.run_key,
        owners.team,
        holds.start_ms as hold_ms,
        scope_start(holds.start_ms) as start_ms,
        scope_end(least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    left join (
        select gpu_uuid, any_value(gpu_model) as gpu_model from intermediate.int_gpu_units group by gpu_uuid
    ) as units using (gpu_uuid)
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        holds.gpu_instance = ''
        and in_window(holds.start_ms, holds.end_ms)
        and in_scope(
            holds.cluster, holds.node, holds.gpu_uuid, units.gpu_model, owners.team, owners.user_name, owners.run_key,
            owners.partition
        )
),

-- a GPU has many holds in a day and few in an hour
hold_hours as (
    select *, unnest(range(start_ms // 3600000, (end_ms - 1) // 3600000 + 1)) * 3600000 as hour_ms
    from holds
    where end_ms > start_ms
),

bins as materialized (
    select
        holds.* exclude (start_ms, end_ms),
        greatest(bins.start_ms, holds.start_ms) as start_ms,
        least(bins.start_ms + 600000, holds.end_ms) as end_ms,
        bins.memory_bytes >= threshold('loaded_memory_bytes') as is_loaded,
        bins.power_w
    from hold_hours as holds
    inner join (
        select gpu_uuid, hour_ms, start_ms, max(memory_used_bytes.min) as memory_bytes, max(power_w.mean) as power_w
        from intermediate.int_gpu_metrics
        where gpu_instance = '' and memory_used_bytes.n > 0
        group by gpu_uuid, hour_ms, start_ms
    ) as bins using (gpu_uuid, hour_ms)
    where bins.start_ms < holds.end_ms and bins.start_ms + 600000 > holds.start_ms
),

first_activity as (
    select holds.job_run_key, holds.gpu_uuid, min(activity.start_ms) as active_ms
    from hold_hours as holds
    inner join intermediate.int_gpu_activity as activity using (gpu_uuid, hour_ms)
    where activity.is_active and activity.gpu_instance = '' and activity.end_ms > holds.hold_ms
    group by all
),

idle as materialized (
    select
        bins.cluster, bins.run_key, bins.team, bins.gpu_model, bins.job_run_key, bins.gpu_uuid,
        bins.start_ms as bin_ms,
        bins.power_w,
        greatest(
            bins.start_ms, activity.start_ms, least(first_activity.active_ms, bins.hold_ms + 600000)
        ) as start_ms,
        least(bins.end_ms, activity.end_ms) as end_ms
    from bins
    inner join intermediate.int_gpu_activity as activity using (gpu_uuid, hour_ms)
    left join first_activity using (job_run_key, gpu_uuid)
    where
        bins.is_loaded
        and not activity.is_active
        and activity.gpu_instance = ''
        and activity.start_ms < bins.end_ms
        and activity.end_ms > bins.start_ms
),

declared as (
    select job_run_key, start_ms, coalesce(end_ms, 9223372036854775807) as end_ms
    from intermediate.int_run_timeline
    where category in ('startup', 'restore', 'gang_wait', 'suspended', 'teardown') and in_window(start_ms, end_ms)
),

covered as (
    select
        idle.job_run_key, idle.gpu_uuid, idle.start_ms,
        sum(least(idle.end_ms, declared.end_ms) - greatest(idle.start_ms, declared.start_ms)) as covered_ms
    from idle
    inner join declared
        on idle.job_run_key = declared.job_run_key
        and idle.start_ms < declared.end_ms
        and idle.end_ms > declared.start_ms
    where idle.end_ms > idle.start_ms
    group by all
),

pieces as (
    select idle.*, idle.end_ms - idle.start_ms - coalesce(covered.covered_ms, 0) as idle_ms
    from idle
    left join covered using (job_run_key, gpu_uuid, start_ms)
    where idle.end_ms > idle.start_ms
),

idle_bins as (
    select
        cluster, run_key, team, gpu_model, gpu_uuid, bin_ms,
        sum(idle_ms)::bigint as idle_ms,
        case when sum(idle_ms) >= 600000 then any_value(power_w) end as power_w
    from pieces
    group by all
),

idle_runs as (
    select
        cluster, run_key, team, gpu_model,
        sum(idle_ms)::bigint as idle_ms,
        avg(power_w) as power_w,
        sum(power_w) / 6000 as energy_kwh,
        600000 * count(power_w) as measured_ms
    from idle_bins
    group by all
),

read_runs as (
    select cluster, run_key, team, gpu_model, sum(end_ms - start_ms)::bigint as held_ms
    from bins
    group by all
)

select
    read_runs.cluster,
    read_runs.run_key,
    read_runs.team,
    read_runs.gpu_model,
    read_runs.held_ms,
    coalesce(idle_runs.idle_ms, 0) as idle_ms,
    coalesce(idle_runs.idle_ms, 0) / read_runs.held_ms as idle_ratio,
    idle_runs.power_w,
    idle_runs.energy_kwh,
    coalesce(idle_runs.measured_ms, 0) as measured_ms
from read_runs
left join idle_runs
    on read_runs.cluster = idle_runs.cluster
    and read_runs.run_key is not distinct from idle_runs.run_key
    and read_runs.team is not distinct from idle_runs.team
    and read_runs.gpu_model is not distinct from idle_runs.gpu_model
where read_runs.held_ms > 0
