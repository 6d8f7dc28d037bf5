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
),

-- steps that were rolled back have no waits in the ledger: their time is lost work already
rolled_back as (
    select
        slower.attempt_key,
        slower.since_ms,
        printf('; rank %d (%s) was late in %d of them, which were rolled back', ranks.rank, ranks.node, count(*)) as late
    from slower
    inner join intermediate.int_rank_step_losses as losses
        on slower.attempt_key = losses.attempt_key
        and losses.start_ms >= slower.since_ms
        and losses.start_ms < slower.until_ms
    inner join intermediate.int_rank_gpus as ranks on losses.attempt_key = ranks.attempt_key and losses.rank = ranks.rank
    where losses.is_straggler and losses.fate <> 'kept'
    group by slower.attempt_key, slower.since_ms, ranks.rank, ranks.node
    qualify row_number() over (partition by slower.attempt_key, slower.since_ms order by count(*) desc, ranks.rank) = 1
)

select
    attempts.cluster,
    slower.run_key,
    slower.since_at as start_at,
    slower.until_at as end_at,
    slower.lost_gpu_ms as gpu_ms,
    'Likely' as confidence,
    rtrim(slower.sentence, '.') || coalesce(rolled_back.late, '') as evidence
from slower
inner join intermediate.int_attempts as attempts using (attempt_key)
left join explained using (attempt_key, since_ms)
left join rolled_back using (attempt_key, since_ms)
where coalesce(explained.wait_ms, 0) < slower.lost_gpu_ms / 2
