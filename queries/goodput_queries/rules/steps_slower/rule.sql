-- skip_if_empty: marts.step_changes
with slower as (
    from marts.step_changes
    where ratio > 1 and lost_gpu_ms > 0
),

-- what named ranks and throttling explain has a finding of its own
explained as (
    select
        slower.attempt_key,
        slower.since_ms,
        sum(least(splits.end_ms, slower.until_ms) - greatest(splits.start_ms, slower.since_ms)) as wait_ms
    from slower
    inner join intermediate.int_step_splits as splits
        on slower.attempt_key = splits.attempt_key
        and splits.start_ms < slower.until_ms
        and splits.end_ms > slower.since_ms
        and splits.category in ('throttled', 'straggler_wait')
    group by slower.attempt_key, slower.since_ms
)

select
    attempts.cluster,
    slower.run_key,
    slower.since_at as start_at,
    slower.until_at as end_at,
    slower.lost_gpu_ms as gpu_ms,
    'Likely' as confidence,
    slower.sentence as evidence
from slower
inner join intermediate.int_attempts as attempts using (attempt_key)
left join explained using (attempt_key, since_ms)
where coalesce(explained.wait_ms, 0) < slower.lost_gpu_ms / 2
