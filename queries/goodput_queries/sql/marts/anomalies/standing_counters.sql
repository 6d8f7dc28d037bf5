-- Series that stand still while their GPU works, and GPUs whose readings are rejected: evidence that is not to be
-- believed, and no idle time. Of whole GPUs that were allocated, by the ten-minute roll-up.
-- grain: rule, gpu_uuid, start_at
-- skip_if_empty: intermediate.int_held_bins
-- rule: frozen_series (power and energy do not change by a digit), standing_energy (the counter gains nothing at power over
--  0), standing_power, standing_temperature, stuck_profiling (no engine activity at high utilisation and power),
--  rejected_values (blanks and impossible values)
-- start_at, end_at: first and last ten minutes of it
-- gpu_ms: length; cost: null, since it is no loss
-- samples: number of samples that stood still, or were rejected
-- score: samples / least number of samples of the rule
-- confidence: Confirmed for energy at power over 0 and for rejected values, else Likely
with bins as materialized (
    select
        held.*, readings.samples, readings.flagged_samples,
        coalesce(readings.sm_active_ratio.min, readings.engine_active_ratio.min, readings.gpu_busy_ratio.min) as use_min_ratio,
        readings.power_w.max as power_max_w,
        readings.power_w.n as power_samples,
        readings.energy_j.n as energy_samples,
        readings.gpu_temperature_c.max as gpu_temperature_max_c,
        readings.power_w.n > 1 and readings.power_w.min = readings.power_w.max as has_one_power,
        readings.energy_j.n > 1 and readings.energy_j.gain = 0 as has_no_gain,
        readings.gpu_temperature_c.min = readings.gpu_temperature_c.max as has_one_temperature
    from intermediate.int_gpu_metrics as readings
    inner join intermediate.int_held_bins as held using (source, gpu_uuid, start_ms)
    where
        readings.gpu_instance = '' and readings.hour_ms > scope_from_ms() - one_hour_ms() and readings.hour_ms < scope_to_ms()
        and (
            has_one_power
            or has_no_gain
            or has_one_temperature
            or readings.engine_active_ratio.max = 0
            or readings.flagged_samples >= threshold('rejected_sample_share') * readings.samples
        )
),

idle_powers as (
    select gpu_model, quantile_cont(power_min_w, 0.05) as power_w from intermediate.int_held_bins group by gpu_model
),

marked as (
    select
        bins.cluster, bins.node, bins.gpu_uuid, bins.job_run_key, bins.start_ms, bins.use_min_ratio, bins.use_max_ratio,
        unnest([
            {
                'rule': 'frozen_series', 'is_so': bins.has_one_power and bins.has_no_gain and bins.power_max_w > 0,
                'samples': bins.energy_samples, 'value': bins.power_max_w
            },
            {
                'rule': 'standing_energy', 'is_so': bins.has_no_gain and not bins.has_one_power and bins.power_w > 0,
                'samples': bins.energy_samples, 'value': bins.power_w
            },
            {
                'rule': 'standing_power', 'is_so': bins.has_one_power and not coalesce(bins.has_no_gain, false),
                'samples': bins.power_samples, 'value': bins.power_max_w
            },
            {
                'rule': 'standing_temperature', 'is_so': bins.has_one_temperature,
                'samples': bins.samples, 'value': bins.gpu_temperature_max_c
            },
            {
                'rule': 'stuck_profiling',
                'is_so': bins.engine_max_ratio = 0
                    and bins.gpu_busy_ratio >= threshold('stuck_busy_ratio')
                    and bins.power_w >= threshold('stuck_power_ratio') * idle_powers.power_w,
                'samples': bins.samples, 'value': bins.gpu_busy_ratio
            },
            {
                'rule': 'rejected_values',
                'is_so': bins.flagged_samples >= threshold('rejected_sample_share') * bins.samples,
                'samples': bins.flagged_samples, 'value': bins.flagged_samples / bins.samples
            }
        ], max_depth := 2)
    from bins
    left join idle_powers using (gpu_model)
),

standing as (
    select
        *,
        coalesce(
            start_ms - lag(start_ms) over of_gpu > ten_minutes_ms()
            -- a gauge that moves between two parts does not stand still; values of other rules are no gauges
            or (rule in ('frozen_series', 'standing_power', 'standing_temperature') and value <> lag(value) over of_gpu),
            true
        ) as is_new
    from marked
    where is_so
    window of_gpu as (partition by rule, gpu_uuid order by start_ms)
),

numbered as (
    select
        *,
        count_if(is_new) over (partition by rule, gpu_uuid order by start_ms rows unbounded preceding) as stretch
    from standing
),

stretches as (
    select
        rule,
        gpu_uuid,
        any_value(cluster) as cluster,
        any_value(node) as node,
        arg_min(job_run_key, start_ms) as job_run_key,
        min(start_ms) as first_ms,
        max(start_ms) + ten_minutes_ms() as last_ms,
        sum(samples)::bigint as samples,
        avg(value) as value,
        max(use_max_ratio) - min(use_min_ratio) as use_range,
        case
            when rule = 'standing_temperature' then threshold('standing_temperature_samples')
            when rule = 'rejected_values' then threshold('rejected_min_samples')
            else threshold('standing_min_samples')
        end as least_samples
    from numbered
    group by rule, gpu_uuid, stretch
)

select
    found.* exclude (first_ms, last_ms, value, use_range, least_samples),
    owners.run_key,
    owners.run_id,
    owners.team,
    from_ms(found.first_ms) as start_at,
    from_ms(found.last_ms) as end_at,
    found.last_ms - found.first_ms as gpu_ms,
    null::double as cost,
    found.samples / found.least_samples as score,
    case
        when found.rule in ('standing_energy', 'frozen_series', 'rejected_values') then 'Confirmed'
        else 'Likely'
    end as confidence,
    case found.rule
        when 'frozen_series' then printf('power stood at %.1f W and the energy counter still', found.value)
        when 'standing_energy' then printf('the energy counter stood still at a mean power of %.0f W', found.value)
        when 'standing_power' then printf('power stood at %.1f W', found.value)
        when 'standing_temperature' then printf('temperature stood at %.0f °C', found.value)
        when 'stuck_profiling' then printf('engine active 0 %% at a GPU utilisation of %.0f %%', 100 * found.value)
        else printf('%.1f %% of the samples have a rejected value', 100 * found.value)
    end
    || ', ' || counted(found.samples, 'sample')
    || case
        when found.rule in ('standing_power', 'standing_temperature')
            then printf('; activity changed by %.0f %% meanwhile', 100 * found.use_range)
        else ''
    end as evidence
from stretches as found
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_gpu_names as models using (gpu_uuid)
where
    found.samples >= found.least_samples
    -- a steady load has steady values
    and (
        found.rule not in ('standing_power', 'standing_temperature')
        or found.use_range >= threshold('standing_use_range')
    )
    and in_scope(
        found.cluster, found.node, found.gpu_uuid, models.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
