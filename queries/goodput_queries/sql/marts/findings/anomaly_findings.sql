-- Anomalies of the scope as findings: low use, series that vanish or stand still, GPUs and nodes that differ from their
-- peers, sudden drops, steps that come no more, trouble of hosts, periodic gaps, losses that are not finite or diverge, steps that
-- become slower, memory that grows, workers of a pipeline that are uneven. Their time is in the ledger under
-- other names: nothing of it is counted as coming back.
-- grain: rule, cluster, node, gpu_uuid, run_key, since_ms
-- access: team
-- evaluated: first
-- until_ms: null: it still is
-- gpu_ms, cost: GPU time concerned; null: not a time
with slower as (
    select *
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

found as (
    from marts.low_use
    union all by name from marts.silent_gpus
    union all by name from marts.standing_counters
    union all by name from marts.peer_outliers
    union all by name from marts.sudden_drops
    union all by name from marts.host_causes
    union all by name from marts.periodic_gaps
),

signs as (
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence from found
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.stalled_runs
    union all
    select
        'loss_' || kind, cluster, null, null, run_key, step_at, step_at, null, null,
        case when is_lasting then 'Confirmed' else 'Likely' end,
        'from step ' || step || ' of attempt ' || attempt || ' on, in ' || counted(steps, 'logged step')
            || coalesce('; the last finite loss was ' || round(last_finite_loss, 3) || ' at step ' || last_finite_step, '')
    from marts.loss_anomalies
    union all
    select
        'steps_slower', attempts.cluster, null, null, slower.run_key, slower.since_at, slower.until_at, slower.lost_gpu_ms,
        null, 'Likely', slower.sentence
    from slower
    inner join intermediate.int_attempts as attempts using (attempt_key)
    left join explained using (attempt_key, since_ms)
    where coalesce(explained.wait_ms, 0) < slower.lost_gpu_ms / 2
    union all
    select
        'memory_growth', attempts.cluster, growth.node, growth.gpu_uuid, growth.run_key,
        growth.last_at - to_milliseconds(growth.windows * 600000), growth.last_at, null, null,
        case when growth.windows >= threshold('memory_growth_windows') then 'Likely' else 'Not confirmed' end,
        format('used memory grows by {:.2f} GB an hour', growth.growth_bytes_per_h / 1e9)
            || coalesce(format(', full in {:.1f} h', growth.time_to_full_s / 3600), '')
    from marts.memory_growth as growth
    inner join intermediate.int_attempts as attempts using (attempt_key)
    union all
    select
        'uneven_workers', replays.cluster, null, null, replays.run_key, from_ms(min(attempts.start_ms)),
        from_ms(nullif(max(coalesce(attempts.end_ms, 9223372036854775807)), 9223372036854775807)), null, null,
        'Likely', any_value(replays.sentence)
    from marts.pipeline_replays as replays
    inner join intermediate.int_attempts as attempts using (cluster, run_key)
    where
        replays.cause is not null
        and in_window(attempts.start_ms, attempts.end_ms)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
    group by replays.cluster, replays.run_key
)

select
    signs.rule,
    signs.cluster,
    signs.node,
    signs.gpu_uuid,
    signs.run_key,
    ''::varchar as detail,
    epoch_ms(signs.start_at) as since_ms,
    epoch_ms(signs.end_at) as until_ms,
    signs.gpu_ms::bigint as gpu_ms,
    signs.cost,
    case
        when rules.severity = 'warning' and signs.gpu_ms < threshold('finding_warning_ms') then 'info'
        else rules.severity
    end as severity,
    signs.confidence,
    signs.evidence,
    null::varchar as what_to_do
from signs
inner join reference.finding_rules as rules using (rule)
