-- Step rhythm of the scope's attempts from SM activity read every two seconds or more often, for jobs that report neither
-- steps nor collectives: the shortest lag at which activity repeats itself. It is inferred and never enters the ledger.
-- Activity is the mean over the time since the last reading, so that steps shorter than a reading leave no swing in it;
-- power is a momentary value and shows them as longer ones (an alias). Steps under four readings stay unknown.
-- grain: attempt_key
-- access: team
-- period_ms: lag of the repeat; error_ms: half a sampling interval over it; null: no rhythm
-- samples, interval_ms: readings of one GPU in the middle of the attempt, and their distance; null: none so often
-- correlation: of the series with itself at the lag
-- method, reason: how it was inferred; why there is no rhythm
-- confidence: Likely; null where there is no rhythm
with attempts as (
    select
        attempt_key, run_key, attempt, job_run_key,
        greatest(start_ms, (start_ms + coalesce(end_ms, as_of_ms)) // 2 - threshold('rhythm_window_ms') // 2)::bigint as from_ms,
        least(coalesce(end_ms, as_of_ms), (start_ms + coalesce(end_ms, as_of_ms)) // 2 + threshold('rhythm_window_ms') // 2)::bigint
            as to_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    where
        chosen_run() is not null
        and run_key = chosen_run()
        and of_teams(team)
        and in_cluster(cluster)
        and in_window(start_ms, end_ms)
),

-- one GPU of each attempt: a gang steps together
chosen as (
    select attempts.*, holds.gpu_uuid
    from attempts
    inner join intermediate.int_holds as holds using (job_run_key)
    where holds.gpu_instance = ''
    qualify row_number() over (partition by attempt_key order by holds.node, holds.gpu_uuid) = 1
),

readings as (
    select
        chosen.attempt_key,
        samples.ts_ms,
        samples.sm_active_ratio,
        row_number() over (partition by chosen.attempt_key order by samples.ts_ms) as place
    from chosen
    inner join staging.stg_gpu_samples as samples
        on chosen.gpu_uuid = samples.gpu_uuid
        and samples.gpu_instance = ''
        and samples.ts_ms >= chosen.from_ms
        and samples.ts_ms < chosen.to_ms
    where
        samples.sm_active_ratio is not null
        and samples.ts >= from_ms((select min(from_ms) from chosen))
        and samples.ts < from_ms((select max(to_ms) from chosen))
),

series as (
    select
        attempt_key,
        count(*) as samples,
        (max(ts_ms) - min(ts_ms)) / nullif(count(*) - 1, 0) as interval_ms,
        stddev_pop(sm_active_ratio) / nullif(avg(sm_active_ratio), 0) as swing_ratio
    from readings
    group by attempt_key
),

often as (
    select *
    from series
    where interval_ms <= threshold('rhythm_interval_ms') and samples >= threshold('rhythm_samples')
),

swinging as (
    select * from often where swing_ratio >= threshold('rhythm_swing')
),

lags as (
    select
        *,
        coalesce(correlation > lag(correlation) over by_lag and correlation >= lead(correlation) over by_lag, false) as is_peak
    from (
        select
            first.attempt_key,
            second.place - first.place as lag,
            corr(first.sm_active_ratio, second.sm_active_ratio) as correlation
        from readings as first
        inner join swinging using (attempt_key)
        inner join readings as second
            on first.attempt_key = second.attempt_key
            and second.place > first.place
            and second.place <= first.place + swinging.samples // 4
        group by first.attempt_key, second.place - first.place
    )
    window by_lag as (partition by attempt_key order by lag)
),

-- multiples of the period repeat as well: the shortest that does so nearly as well as the best
found as (
    select attempt_key, arg_min({'lag': lag, 'correlation': correlation}, lag) as best
    from (select *, max(correlation) filter (where is_peak) over (partition by attempt_key) as most from lags)
    where is_peak and correlation >= threshold('rhythm_correlation') and correlation >= 0.9 * most
    group by attempt_key
)

select
    attempts.run_key,
    attempts.attempt,
    attempts.attempt_key,
    case when found.best.lag >= 4 then found.best.lag * often.interval_ms end as period_ms,
    case when found.best.lag >= 4 then often.interval_ms / 2 end as error_ms,
    often.samples,
    often.interval_ms,
    found.best.correlation as correlation,
    case when found.best.lag >= 4 then 'inferred from SM activity' end as method,
    case when found.best.lag >= 4 then 'Likely' end as confidence,
    case
        when often.attempt_key is null then 'SM activity is not read every two seconds or more often'
        when coalesce(often.swing_ratio, 0) < threshold('rhythm_swing') then 'activity does not swing: steps may be shorter than readings'
        when found.best is null then 'activity does not repeat itself'
        when found.best.lag < 4 then 'it repeats within four readings: steps may be shorter, and look longer'
    end as reason
from attempts
left join often using (attempt_key)
left join found using (attempt_key)
