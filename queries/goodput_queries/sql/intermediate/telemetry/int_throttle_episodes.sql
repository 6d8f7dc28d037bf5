-- Intervals in which a reason reduced a GPU's clocks, of all places and of all owners that the reader sees:
-- marts.throttle_episodes, of which a node, a team or a run is a filter.
-- grain: gpu_uuid, reason, start_at
-- evaluated: first
-- counts_as_loss, verdict: see marts.throttle_episodes
with reasons as (
    select bit_value::bigint as bit_value, reason
    from reference.clocks_event_reasons
    where is_throttle = 1
),

readings as (
    select samples.source, samples.gpu_uuid, samples.ts_ms, samples.power_w, samples.sm_clock_hz,
        samples.gpu_temperature_c, reasons.reason, intervals.interval_ms
    from staging.stg_gpu_samples as samples
    -- a mask is at least each of its bits, which zone maps know: few readings have one of these
    inner join reasons
        on samples.clocks_event_reasons >= reasons.bit_value
        and samples.clocks_event_reasons & reasons.bit_value <> 0
    left join intermediate.int_sample_intervals as intervals
        on hash(samples.source, samples.gpu_uuid, samples.gpu_instance) = intervals.series
        and samples.ts_ms // one_hour_ms() * one_hour_ms() = intervals.hour_ms
    where
        samples.ts >= from_ms(scope_from_ms())
        and samples.ts < scope_to_at()
        and in_gpu(samples.gpu_uuid)
),

marked as (
    select
        *,
        coalesce(
            ts_ms - lag(ts_ms) over (partition by source, gpu_uuid, reason order by ts_ms)
            > threshold('sample_reach') * interval_ms,
            true
        ) as is_new
    from readings
),

numbered as (
    select
        *,
        count_if(is_new) over (partition by source, gpu_uuid, reason order by ts_ms rows unbounded preceding) as episode
    from marked
),

episodes as (
    select
        source,
        gpu_uuid,
        reason,
        'clock event reasons' as evidence,
        cast(min(ts_ms) - coalesce(max(interval_ms), 0) as bigint) as start_ms,
        max(ts_ms) as end_ms,
        null::bigint as throttled_ms,
        count(*) as readings,
        avg(power_w) as power_w,
        median(sm_clock_hz) as sm_clock_hz,
        max(gpu_temperature_c) as gpu_temperature_c
    from numbered
    group by source, gpu_uuid, reason, episode
    union all by name
    select *, 'throttle counters' as evidence from intermediate.int_throttle_counters
),

gpus as (
    select gpu_uuid, any_value(node) as node, any_value(cluster) as cluster, max(gpu_index) as gpu_index,
        max(power_limit_w) as power_limit_w, max(sm_clock_max_hz) as sm_clock_max_hz
    from staging.stg_gpus
    group by gpu_uuid
),

-- only steps are throttled
stepping as (
    select
        segments.* exclude (gpu_ms, share_lo, share_hi, share_of)
        replace (
            greatest(segments.start_ms, episodes.start_ms) as start_ms,
            least(segments.end_ms, episodes.end_ms) as end_ms
        ),
        -- what is booked is the time of the GPU, and of each of its instances
        0 as share_lo,
        1 as share_hi,
        1 as share_of,
        episodes.reason,
        episodes.start_ms as episode_ms
    from episodes
    inner join intermediate.int_ledger_segments as segments
        on episodes.gpu_uuid = segments.gpu_uuid
        and segments.category = 'stepping'
        and segments.start_ms < episodes.end_ms
        and segments.end_ms > episodes.start_ms
    where
        sees_all_teams()
        or segments.job_run_key in (select job_run_key from intermediate.int_job_run_owners where of_teams(team))
),

booked as (
    select gpu_uuid, reason, episode_ms as start_ms, sum(ms) as gpu_ms
    from ledger_of('stepping')
    where category = 'throttled'
    group by all
),

held as (
    select episodes.gpu_uuid, episodes.reason, episodes.start_ms, any_value(owners.run_key) as run_key,
        any_value(owners.team) as team
    from episodes
    inner join intermediate.int_holds as holds
        on episodes.gpu_uuid = holds.gpu_uuid
        and episodes.end_ms >= holds.start_ms
        and episodes.end_ms < coalesce(holds.end_ms, forever_ms())
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    where of_teams(owners.team)
    group by all
),

described as (
    select
        gpus.cluster,
        gpus.* exclude (gpu_uuid, cluster),
        episodes.*,
        episodes.sm_clock_hz / nullif(gpus.sm_clock_max_hz, 0) as clock_ratio,
        episodes.power_w / nullif(gpus.power_limit_w, 0) as power_ratio
    from episodes
    left join gpus using (gpu_uuid)
),

judged as (
    select
        *,
        case
            when reason = 'sw_power_cap' then case
                when power_ratio >= 0.9 then 'at its power limit under load: normal, not a loss'
                when power_ratio < 0.5 then 'draws far less than its limit: a short peak, not a loss'
                -- power readings are means over a second and lag behind short episodes; the clock does not
                when clock_ratio >= 0.9 then 'at full clock under a power cap: normal, not a loss'
                when clock_ratio is null then 'under a power cap: the cost is unknown without clock or power readings'
                else 'low clock under a power cap: check the limit'
            end
            when reason in ('hw_thermal', 'sw_thermal', 'thermal') then 'too hot: check cooling'
            when reason = 'hw_power_brake' then 'the node cut its power: check feeds and supplies'
            else 'slowed down by the hardware: check the node'
        end as verdict
    from described
)

select
    judged.* exclude (source, start_ms, end_ms, throttled_ms, clock_ratio, power_ratio),
    judged.reason <> 'sw_power_cap' or starts_with(judged.verdict, 'low clock') as counts_as_loss,
    from_ms(judged.start_ms) as start_at,
    from_ms(judged.end_ms) as end_at,
    coalesce(judged.throttled_ms, judged.end_ms - judged.start_ms) / 1000.0 as duration_s,
    held.run_key,
    held.team,
    coalesce(booked.gpu_ms, 0)::bigint as booked_gpu_ms
from judged
left join booked using (gpu_uuid, reason, start_ms)
left join held using (gpu_uuid, reason, start_ms)
