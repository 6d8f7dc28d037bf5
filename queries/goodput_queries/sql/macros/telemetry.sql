-- Whether a reading shows activity: by all shares of time that it has, else by utilisation; null: it has none of them.
-- Where a share was rejected the others show activity, and none of them idleness: some exporters give 0 for them under
-- full load. NVML's utilisation beside incomplete shares is no reading either (rule 10; flagged_metrics is null in rows
-- of earlier versions).
create or replace macro is_active_reading(
    source, engine_ratio, sm_ratio, tensor_ratio, dram_ratio, busy_ratio, is_flagged, flagged_metrics
) as (
    case
        when greatest(engine_ratio, sm_ratio, tensor_ratio, dram_ratio) >= threshold('idle_share_ratio') then true
        when
            is_flagged and source = 'nvml' and engine_ratio is null
            and coalesce(contains(flagged_metrics, 'gpm'), true)
            then null
        when not coalesce(contains(flagged_metrics, 'active_ratio'), false)
            and coalesce(engine_ratio, sm_ratio, tensor_ratio, dram_ratio) is not null
            then false
        else busy_ratio > 0
    end
);

-- A state (power, clock, temperature, memory in use) over some samples; parts are null, and n is 0, where no sample
-- has it.
create or replace macro rolled_up_state(metric, moment) as ({
    'mean': avg(metric)::float,
    'min': min(metric)::float,
    'max': max(metric)::float,
    'last': arg_max(metric, moment)::float,
    'n': count(metric)::integer
});

-- A share of time or a rate over some samples. The last sample of it says nothing of a bucket, and costs most.
create or replace macro rolled_up_rate(metric) as ({
    'mean': avg(metric)::float,
    'min': min(metric)::float,
    'max': max(metric)::float,
    'n': count(metric)::integer
});

-- A counter over some samples; gain: its increase between the first and the last of them. A counter that is lower than
-- before was reset, and counts again from 0.
create or replace macro rolled_up_counter(counter, moment) as ({
    'first': arg_min(counter, moment),
    'last': arg_max(counter, moment),
    'gain': arg_max(counter, moment) - case
        when min(counter) >= arg_min(counter, moment) and max(counter) <= arg_max(counter, moment) then arg_min(counter, moment)
        when max(counter) > arg_max(counter, moment) then arg_min(counter, moment) - max(counter)
        else 0
    end,
    'n': count(counter)::integer
});

-- Of how many samples a bitmask of reasons why clocks are lower (reference.clocks_event_reasons) has which.
create or replace macro rolled_up_reasons(reasons) as ({
    'power_cap': count_if(reasons & 4 <> 0)::integer,
    'hw_slowdown': count_if(reasons & 8 <> 0)::integer,
    'sw_thermal': count_if(reasons & 32 <> 0)::integer,
    'hw_thermal': count_if(reasons & 64 <> 0)::integer,
    'power_brake': count_if(reasons & 128 <> 0)::integer,
    'n': count(reasons)::integer
});

-- The increase of a rolled-up counter over a part and the time since the part before it; `before` is the last value of
-- that part.
create or replace macro gain_since(rolled_up, before) as (
    rolled_up.gain + case
        when before is null then 0
        when rolled_up.first >= before then rolled_up.first - before
        else rolled_up.first
    end
);

-- The increase of a counter between two readings that follow each other. A counter that is lower than before was reset,
-- and counts again from 0.
create or replace macro counter_increase(counter, before) as (
    case when counter >= before then counter - before when before is not null then counter end
);

-- The increase of a sum of counters of several devices; null where it fell: a device has gone, or all began again.
create or replace macro sum_increase(counter, before) as (case when counter >= before then counter - before end);

-- Of a ten-minute roll-up of clock reasons the share of samples with the commonest reason that slows a GPU down; the
-- power cap is none, since a busy GPU runs at it. Null: no sample has reasons.
create or replace macro slowed_ratio(reasons) as (
    greatest(reasons.hw_slowdown, reasons.sw_thermal, reasons.hw_thermal, reasons.power_brake) / nullif(reasons.n, 0)
);

-- What a stretch of no activity without job evidence is: `pause` (idle time after idle_min_ms), `idle` from its first
-- moment on, or `short`: of a single reading, or too short for readings that are far apart.
create or replace macro inactivity_kind(has_two_readings, interval_ms, is_long) as (
    case
        when not has_two_readings then 'short'
        when interval_ms <= threshold('pause_interval_max_ms') then 'pause'
        when is_long then 'idle'
        else 'short'
    end
);
