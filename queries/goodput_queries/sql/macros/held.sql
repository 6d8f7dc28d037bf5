-- A sum and of how many, of which later sums give the mean.
create or replace macro sum_of(metric) as ({'sum': sum(metric), 'n': count(metric)});
create or replace macro mean_of(sums) as (sum(sums.sum) / nullif(sum(sums.n), 0));

-- Ten minutes of whole GPUs between two moments that were allocated to one job run from begin to end: see
-- intermediate.int_held_bins; hold: number of the allocation.
-- readings: name of a relation with rows of intermediate.int_gpu_metrics
create or replace macro held_bins(readings, since_ms, until_ms) as table (
    with rivals as (
        select gpu_uuid
        from state.reading_series
        where gpu_instance = ''
        group by gpu_uuid
        having count(distinct source) > 1
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
            memory_used_bytes.max as memory_used_bytes,
            pcie_tx_bytes_per_s.mean as pcie_tx_bytes_per_s,
            pcie_rx_bytes_per_s.mean as pcie_rx_bytes_per_s
        from query_table(readings)
        where
            gpu_instance = ''
            and start_ms >= since_ms
            and start_ms <= until_ms - ten_minutes_ms()
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
            (row_number() over ())::integer as hold,
            holds.cluster, holds.node, holds.gpu_uuid, holds.job_run_key, models.gpu_model, holds.start_ms,
            -- the last ten minutes of what still runs are not over
            least(coalesce(holds.end_ms, clusters.as_of_ms), clusters.as_of_ms) as end_ms
        from intermediate.int_holds as holds
        inner join intermediate.int_clusters as clusters using (cluster)
        left join models using (gpu_uuid)
        where
            holds.gpu_instance = ''
            and holds.start_ms < until_ms
            and coalesce(holds.end_ms, forever_ms()) > since_ms
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
                greatest(holds.start_ms, since_ms) // one_hour_ms(),
                (least(holds.end_ms, until_ms) - 1) // one_hour_ms() + 1
            )) * one_hour_ms() as hour_ms
        from holds
        left join gangs using (job_run_key, gpu_model)
    ),

    declared as (
        select distinct
            job_run_key,
            unnest(range(
                greatest(start_ms, since_ms) // ten_minutes_ms(),
                least(
                    end_ms, until_ms,
                    -- one that never ended has no bins after the last reading
                    start_ms + 2678400000
                ) // ten_minutes_ms() + 1
            )) * ten_minutes_ms() as start_ms
        from (
            select job_run_key, start_ms, coalesce(end_ms, forever_ms()) as end_ms
            from intermediate.int_run_timeline
            where category in ('startup', 'restore', 'gang_wait', 'suspended', 'teardown')
                and start_ms < until_ms and coalesce(end_ms, forever_ms()) > since_ms
        )
    )

    select
        holds.cluster, holds.node, holds.job_run_key, holds.gpu_model, holds.gang, holds.hold,
        bins.* exclude (gpu_instance, hour_ms, samples),
        bins.start_ms < holds.start_ms + ten_minutes_ms()
            or (holds.job_run_key, bins.start_ms) in (from declared) as is_starting
    from bins
    inner join hold_hours as holds
        on bins.gpu_uuid = holds.gpu_uuid
        and bins.hour_ms = holds.hour_ms
        and bins.start_ms >= holds.start_ms
        and bins.start_ms + ten_minutes_ms() <= holds.end_ms
);

-- How job runs used them by hour, outside start-up: see intermediate.int_held_hours.
create or replace macro held_hours(readings, since_ms, until_ms) as table (
    select
        any_value(columns(['cluster', 'node', 'job_run_key', 'gpu_uuid', 'gpu_model'])),
        start_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        min(start_ms) as first_ms,
        max(start_ms) + ten_minutes_ms() as last_ms,
        count(*) as bins,
        min(use_metric) as use_metric,
        sum_of(columns([
            'use_ratio', 'gpu_busy_ratio', 'power_w', 'tensor_active_ratio', 'dram_active_ratio', 'sm_occupancy_ratio'
        ])),
        max(use_ratio) as busy_ratio,
        max(greatest(engine_max_ratio, use_max_ratio)) as most_ratio,
        max(memory_used_bytes) as memory_peak_bytes
    from held_bins(readings, since_ms, until_ms)
    where not is_starting and use_ratio is not null
    group by hold, start_ms // one_hour_ms()
);
