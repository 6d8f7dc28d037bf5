-- Ten minutes of whole GPUs in the scope's window that were allocated to one job run from begin to end, with what rules about
-- anomalies ask of the roll-up. Where two sources read a GPU, those of the source with more samples. The scope's run,
-- team or node does not restrict it: a rule compares with peers first.
-- grain: gpu_uuid, start_ms
-- evaluated: first
-- skip_if_empty: intermediate.int_gpu_metrics
-- gang: number of its job run's GPUs of this model; null: of no known model
-- start_ms: start of the ten minutes, epoch ms
-- use_ratio: mean SM activity; without it engine activity, else the share of time with a kernel (use_metric says which)
-- use_max_ratio, use_min_ratio: of its samples
-- is_starting: in the first ten minutes of the allocation, or the job was starting, restoring, suspended or ending
with rivals as (
    select gpu_uuid from state.reading_series where gpu_instance = '' group by gpu_uuid having count(distinct source) > 1
),

in_window as not materialized (
    select *
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
    select gpu_uuid, any_value(gpu_model) as gpu_model, max(gpu_index) as gpu_index
    from intermediate.int_gpu_units
    group by gpu_uuid
),

holds as materialized (
    select
        holds.cluster, holds.node, holds.gpu_uuid, holds.job_run_key, models.gpu_model, models.gpu_index, holds.start_ms,
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
    holds.cluster,
    holds.node,
    holds.job_run_key,
    holds.gpu_model,
    holds.gang,
    bins.gpu_uuid,
    holds.gpu_index,
    bins.start_ms,
    bins.samples,
    bins.flagged_samples,
    case
        when bins.sm_active_ratio.n > 0 then 'SM active'
        when bins.engine_active_ratio.n > 0 then 'Engine active'
        when bins.gpu_busy_ratio.n > 0 then 'GPU utilisation'
    end as use_metric,
    coalesce(bins.sm_active_ratio.mean, bins.engine_active_ratio.mean, bins.gpu_busy_ratio.mean) as use_ratio,
    coalesce(bins.sm_active_ratio.min, bins.engine_active_ratio.min, bins.gpu_busy_ratio.min) as use_min_ratio,
    coalesce(bins.sm_active_ratio.max, bins.engine_active_ratio.max, bins.gpu_busy_ratio.max) as use_max_ratio,
    bins.gpu_busy_ratio.mean as gpu_busy_ratio,
    bins.tensor_active_ratio.mean as tensor_active_ratio,
    bins.dram_active_ratio.mean as dram_active_ratio,
    bins.sm_occupancy_ratio.mean as sm_occupancy_ratio,
    bins.engine_active_ratio.max as engine_max_ratio,
    bins.power_w.mean as power_w,
    bins.power_w.min as power_min_w,
    bins.power_w.max as power_max_w,
    bins.power_w.n as power_samples,
    bins.energy_j.gain as energy_gain_j,
    bins.energy_j.n as energy_samples,
    bins.sm_clock_hz.mean as sm_clock_hz,
    bins.gpu_temperature_c.mean as gpu_temperature_c,
    bins.gpu_temperature_c.min as gpu_temperature_min_c,
    bins.gpu_temperature_c.max as gpu_temperature_max_c,
    bins.memory_used_bytes.max as memory_used_bytes,
    bins.start_ms < holds.start_ms + ten_minutes_ms() or declared.start_ms is not null as is_starting
from bins
inner join hold_hours as holds
    on bins.gpu_uuid = holds.gpu_uuid
    and bins.hour_ms = holds.hour_ms
    and bins.start_ms >= holds.start_ms
    and bins.start_ms + ten_minutes_ms() <= holds.end_ms
left join declared on holds.job_run_key = declared.job_run_key and bins.start_ms = declared.start_ms
