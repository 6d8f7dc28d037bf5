-- Times in which an exporter's counters of throttled time went up, of GPUs whose readings carry no slowdown reason.
-- grain: source, gpu_uuid, reason, start_ms
-- reason: as in clocks_event_reasons; thermal: by software or hardware, which the counter does not distinguish
-- throttled_ms: increase of the counter; excludes resets and increases by more than the elapsed time
-- power_w, sm_clock_hz, gpu_temperature_c: of the readings at which it had gone up
with counters (metric, reason) as (
    values
        ('throttle_power_s', 'sw_power_cap'),
        ('throttle_thermal_s', 'thermal'),
        ('throttle_sw_thermal_s', 'sw_thermal'),
        ('throttle_hw_thermal_s', 'hw_thermal'),
        ('throttle_power_brake_s', 'hw_power_brake'),
        ('throttle_sync_boost_s', 'sync_boost'),
        ('throttle_board_limit_s', 'board_limit'),
        ('throttle_reliability_s', 'reliability')
),

counted as (
    select
        others.source,
        others.gpu_uuid,
        others.gpu_instance,
        counters.reason,
        others.ts,
        others.value - lag(others.value) over of_counter as gain_s,
        others.ts_ms as end_ms,
        lag(others.ts_ms) over of_counter as start_ms
    from staging.stg_gpu_samples_other as others
    inner join counters using (metric)
    window of_counter as (
        partition by others.source, others.gpu_uuid, others.gpu_instance, others.metric order by others.ts
    )
),

-- less than a hundredth of the time is the jitter of a busy GPU
marked as (
    select
        *,
        gain_s between 0.00001 * (end_ms - start_ms) and 0.0011 * (end_ms - start_ms) as is_gain,
        lag(gain_s between 0.00001 * (end_ms - start_ms) and 0.0011 * (end_ms - start_ms)) over (
            partition by source, gpu_uuid, gpu_instance, reason order by end_ms
        ) as was_gain
    from counted
    where
        end_ms > start_ms
        and ts >= from_ms(scope_from_ms())
        and ts < scope_to_at()
        and in_gpu(gpu_uuid)
),

numbered as (
    select
        *,
        count_if(not coalesce(was_gain, false)) over (
            partition by source, gpu_uuid, gpu_instance, reason order by end_ms rows unbounded preceding
        ) as episode
    from marked
    where is_gain
)

select
    numbered.source,
    numbered.gpu_uuid,
    numbered.reason,
    min(numbered.start_ms) as start_ms,
    max(numbered.end_ms) as end_ms,
    cast(round(1000 * sum(numbered.gain_s)) as bigint) as throttled_ms,
    count(*) as readings,
    avg(samples.power_w) as power_w,
    median(samples.sm_clock_hz) as sm_clock_hz,
    max(samples.gpu_temperature_c) as gpu_temperature_c
from numbered
left join staging.stg_gpu_samples as samples using (source, gpu_uuid, gpu_instance, ts)
where
    numbered.gpu_uuid not in (
        select gpu_uuid
        from staging.stg_gpu_samples
        where clocks_event_reasons is not null and gpu_uuid in (select gpu_uuid from numbered)
    )
    -- where the exporter distinguishes them, their sum adds nothing
    and not (
        numbered.reason = 'thermal'
        and numbered.gpu_uuid in (select gpu_uuid from counted where reason in ('sw_thermal', 'hw_thermal'))
    )
group by numbered.source, numbered.gpu_uuid, numbered.reason, numbered.episode
