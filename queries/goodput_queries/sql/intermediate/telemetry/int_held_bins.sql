-- Ten minutes of whole GPUs in the scope's window that were allocated to one job run from begin to end, with what rules about
-- anomalies ask of the roll-up. Where two sources read a GPU, those of the source with more samples. The scope's run,
-- team or node does not restrict it: a rule compares with peers first.
-- grain: gpu_uuid, start_ms
-- evaluated: first
-- skip_if_empty: intermediate.int_gpu_metrics
-- gang: number of its job run's GPUs of this model; null: of no known model
-- start_ms: start of the ten minutes, epoch ms
-- use_ratio: mean SM activity; without it engine activity, else the share of time with a kernel (use_metric says which)
-- use_max_ratio: of its samples
-- is_starting: in the first ten minutes of the allocation, or the job was starting, restoring, suspended or ending
with rivals as (
    select gpu_uuid from state.reading_series where gpu_instance = '' group by gpu_uuid having count(distinct source) > 1
),

in_window as not materialized (
    select
        source, gpu_uuid, gpu_instance, hour_ms, start_ms, samples,
        case
            when sm_active_ratio.n > 0 then 'SM active'
            when engine_active_ratio.n > 0 then 'Engine active'
            when gpu_busy_ratio.n > 0 then 'GPU utilisation'
        end as use_metric,
        coalesce(sm_active_ratio.mean, engine_active_ratio.mean, gpu_busy_ratio.mean) as use_ratio,
        coalesce(sm_active_ratio.max, engine_active_ratio.max, gpu_busy_ratio.max) as use_max_ratio,
        gpu_busy_ratio.mean as gpu_busy_ratio,
        tensor_active_ratio.mean as tensor_active_ratio,
        dram_active_ratio.mean as dram_active_ratio,
        sm_occupancy_ratio.mean as sm_occupancy_ratio,
        engine_active_ratio.max as engine_max_ratio,
        power_w.mean as power_w,
        power_w.min as power_min_w,
        sm_clock_hz.mean as sm_clock_hz,
        gpu_temperature_c.mean as gpu_temperature_c,
        memory_used_bytes.max as memory_used_bytes
    from intermediate.int_gpu_metrics
    where
        gpu_instance = ''
        and hour_ms > scope_from_ms() - one_hour_ms()
        and start_ms >= scope_from_ms()
        and start_ms <= scope_to_ms() - ten_minutes_ms()
),

-- most GPUs have one source, and choosing costs as much as all the rest
bins as (
    select * from in_window where gpu_uuid not in (from rivals)
    union all
    (
        select *
        from in_window
        where gpu_uuid in (from rivals)
        qualify row_number() over (partition by gpu_uuid, gpu_instance, start_ms order by samples desc, source) = 1
    )
),

models as (
    select gpu_uuid, any_value(gpu_model) as gpu_model from intermediate.int_gpu_units group by gpu_uuid
),

holds as materialized (
    select
        holds.cluster, holds.node, holds.gpu_uuid, holds.job_run_key, models.gpu_model, holds.start_ms,
        -- the last ten minutes of what still runs are not over
        least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    left join models using (gpu_uuid)
    where
        holds.gpu_instance = ''
        and in_window(holds.start_ms, holds.end_ms)
        -- shorter ones have no ten minutes
        and coalesce(holds.end_ms, forever_ms()) - holds.start_ms >= ten_minutes_ms()
),

gangs as (
    select job_run_key, gpu_model, (row_number() over ())::integer as gang
    from (select distinct job_run_key, gpu_model from holds where gpu_model is not null)
),

-- a GPU has many holds in a day and few in an hour
hold_hours as (
    select
        holds.*,
        gangs.gang,
        unnest(range(
            greatest(holds.start_ms, scope_from_ms()) // one_hour_ms(),
            (least(holds.end_ms, scope_to_ms()) - 1) // one_hour_ms() + 1
        )) * one_hour_ms() as hour_ms
    from holds
    left join gangs using (job_run_key, gpu_model)
),

declared as (
    select distinct
        job_run_key,
        unnest(range(
            greatest(start_ms, scope_from_ms()) // ten_minutes_ms(),
            least(
                end_ms, scope_to_ms(),
                -- one that never ended has no bins after the last reading
                start_ms + 2678400000
            ) // ten_minutes_ms() + 1
        )) * ten_minutes_ms() as start_ms
    from (
        select job_run_key, start_ms, coalesce(end_ms, forever_ms()) as end_ms
        from intermediate.int_run_timeline
        where category in ('startup', 'restore', 'gang_wait', 'suspended', 'teardown') and in_window(start_ms, end_ms)
    )
)

select
    holds.cluster, holds.node, holds.job_run_key, holds.gpu_model, holds.gang,
    bins.* exclude (gpu_instance, hour_ms, samples),
    bins.start_ms < holds.start_ms + ten_minutes_ms() or (holds.job_run_key, bins.start_ms) in (from declared) as is_starting
from bins
inner join hold_hours as holds
    on bins.gpu_uuid = holds.gpu_uuid
    and bins.hour_ms = holds.hour_ms
    and bins.start_ms >= holds.start_ms
    and bins.start_ms + ten_minutes_ms() <= holds.end_ms
