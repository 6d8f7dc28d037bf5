-- Executing idle: allocated time of whole GPUs in which a job's program was loaded (memory in use) and nothing ran, by run;
-- and what the GPUs drew. Start-up, restore, suspension and teardown are left out, and without job events what is before the
-- first activity, at most ten minutes.
-- grain: cluster, run_key, gpu_model
-- skip_if_empty: intermediate.int_gpu_metrics
-- access: team
-- held_ms: allocated time with readings of memory; idle_ms: of it executing idle; idle_ratio: idle_ms / held_ms
-- power_w: of one GPU, mean of ten minutes that were all idle, with a power reading; null: none has
-- energy_kwh: of these ten minutes; measured_ms: their time
-- joined and grouped by numbers: the names of a GPU and of its job take several times as long
with units as materialized (
    select gpu_uuid, any_value(gpu_model) as gpu_model, (row_number() over ())::integer as unit
    from (
        select gpu_uuid, gpu_model from intermediate.int_gpu_units
        union all
        select distinct gpu_uuid, null from intermediate.int_holds
    )
    group by gpu_uuid
),

rivals as (
    select gpu_uuid from state.reading_series where gpu_instance = '' group by gpu_uuid having count(distinct source) > 1
),

held as materialized (
    select
        holds.cluster,
        holds.job_run_key,
        owners.run_key,
        owners.team,
        units.*,
        holds.start_ms as hold_ms,
        scope_start(holds.start_ms) as start_ms,
        scope_end(least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    inner join units using (gpu_uuid)
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        holds.gpu_instance = ''
        and in_window(holds.start_ms, holds.end_ms)
        and in_scope(
            holds.cluster, holds.node, holds.gpu_uuid, units.gpu_model, owners.team, owners.user_name, owners.run_key,
            owners.partition
        )
),

-- GPUs of one model of a job run
gangs as materialized (
    select *, (row_number() over ())::integer as gang
    from (select distinct cluster, job_run_key, run_key, team, gpu_model from held)
),

holds as (
    select
        gangs.gang, held.unit, held.hold_ms, held.start_ms, held.end_ms,
        count(*) over (partition by gangs.gang, held.unit) > 1 as is_one_of_several
    from held
    inner join gangs
        on held.job_run_key = gangs.job_run_key and held.gpu_model is not distinct from gangs.gpu_model
),

-- a GPU has many holds in a day and few in an hour
hold_hours as materialized (
    select *, unnest(range(start_ms // one_hour_ms(), (end_ms - 1) // one_hour_ms() + 1)) as hour
    from holds
    where end_ms > start_ms
),

held_units as materialized (select distinct unit, gpu_uuid from held),

read_bins as (
    select
        held_units.unit, metrics.hour_ms // one_hour_ms() as hour, metrics.start_ms,
        metrics.memory_used_bytes.min >= threshold('loaded_memory_bytes') as is_loaded, metrics.power_w.mean as power_w,
        metrics.gpu_uuid in (from rivals) as is_of_rivals
    from intermediate.int_gpu_metrics as metrics
    inner join held_units using (gpu_uuid)
    where
        metrics.gpu_instance = ''
        and metrics.memory_used_bytes.n > 0
        and metrics.hour_ms > scope_from_ms() - one_hour_ms()
        and metrics.hour_ms < scope_to_ms()
),

bins as materialized (
    select
        holds.* exclude (start_ms, end_ms, is_one_of_several),
        bins.start_ms as bin_ms,
        greatest(bins.start_ms, holds.start_ms) as start_ms,
        least(bins.start_ms + ten_minutes_ms(), holds.end_ms) as end_ms,
        bins.is_loaded,
        bins.power_w
    from hold_hours as holds
    inner join (
        select * exclude (is_of_rivals) from read_bins where not is_of_rivals
        union all
        select unit, hour, start_ms, bool_or(is_loaded), max(power_w)
        from read_bins
        where is_of_rivals
        group by unit, hour, start_ms
    ) as bins using (unit, hour)
    where bins.start_ms < holds.end_ms and bins.start_ms + ten_minutes_ms() > holds.start_ms
),

activity as materialized (
    select held_units.unit, activity.hour_ms // one_hour_ms() as hour, activity.start_ms, activity.end_ms, activity.is_active
    from intermediate.int_gpu_activity as activity
    inner join held_units using (gpu_uuid)
    where
        activity.gpu_instance = ''
        and activity.hour_ms > scope_from_ms() - one_hour_ms()
        and activity.hour_ms < scope_to_ms()
),

-- later than ten minutes it does not matter
first_activity as (
    select holds.gang, holds.unit, min(activity.start_ms) as active_ms
    from hold_hours as holds
    inner join activity using (unit, hour)
    where
        activity.is_active
        and activity.end_ms > holds.hold_ms
        and (holds.hour * one_hour_ms() < holds.hold_ms + ten_minutes_ms() or holds.is_one_of_several)
    group by holds.gang, holds.unit
),

idle as materialized (
    select
        bins.gang, bins.unit, bins.bin_ms, bins.power_w,
        greatest(
            bins.start_ms, activity.start_ms, least(first_activity.active_ms, bins.hold_ms + ten_minutes_ms())
        ) as start_ms,
        least(bins.end_ms, activity.end_ms) as end_ms
    from bins
    inner join activity using (unit, hour)
    left join first_activity using (gang, unit)
    where
        bins.is_loaded
        and not activity.is_active
        and activity.start_ms < bins.end_ms
        and activity.end_ms > bins.start_ms
),

declared as (
    select gangs.gang, timeline.start_ms, coalesce(timeline.end_ms, forever_ms()) as end_ms
    from intermediate.int_run_timeline as timeline
    inner join gangs using (job_run_key)
    where
        timeline.category in ('startup', 'restore', 'gang_wait', 'suspended', 'teardown')
        and in_window(timeline.start_ms, timeline.end_ms)
),

covered as (
    select
        idle.gang, idle.unit, idle.start_ms,
        sum(least(idle.end_ms, declared.end_ms) - greatest(idle.start_ms, declared.start_ms)) as covered_ms
    from idle
    inner join declared
        on idle.gang = declared.gang
        and idle.start_ms < declared.end_ms
        and idle.end_ms > declared.start_ms
    where idle.end_ms > idle.start_ms
    group by all
),

idle_bins as (
    select
        idle.gang, idle.unit, idle.bin_ms,
        sum(idle.end_ms - idle.start_ms - coalesce(covered.covered_ms, 0))::bigint as idle_ms,
        any_value(idle.power_w) as any_power_w
    from idle
    left join covered using (gang, unit, start_ms)
    where idle.end_ms > idle.start_ms
    group by idle.gang, idle.unit, idle.bin_ms
),

idle_gangs as (
    select
        gang,
        sum(idle_ms)::bigint as idle_ms,
        sum(any_power_w) filter (where idle_ms >= ten_minutes_ms()) as power_w,
        count(any_power_w) filter (where idle_ms >= ten_minutes_ms()) as powers
    from idle_bins
    group by gang
),

held_gangs as (select gang, sum(end_ms - start_ms)::bigint as held_ms from bins group by gang)

select
    gangs.* exclude (job_run_key, gang),
    sum(held_gangs.held_ms)::bigint as held_ms,
    coalesce(sum(idle_gangs.idle_ms), 0)::bigint as idle_ms,
    coalesce(sum(idle_gangs.idle_ms), 0) / sum(held_gangs.held_ms) as idle_ratio,
    sum(idle_gangs.power_w) / nullif(sum(idle_gangs.powers), 0) as power_w,
    sum(idle_gangs.power_w) / 6000 as energy_kwh,
    (ten_minutes_ms() * coalesce(sum(idle_gangs.powers), 0))::bigint as measured_ms
from gangs
inner join held_gangs using (gang)
left join idle_gangs using (gang)
group by gangs.cluster, gangs.run_key, gangs.team, gangs.gpu_model
having sum(held_gangs.held_ms) > 0
