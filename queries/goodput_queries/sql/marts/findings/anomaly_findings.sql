-- Anomalies of the scope as findings: low use, series that vanish or stand still, GPUs and nodes that differ from their
-- peers, sudden drops, trouble of hosts, periodic gaps, losses that are not finite or diverge. Their time is in the ledger under other names: nothing of it is
-- counted as coming back.
-- grain: rule, cluster, node, gpu_uuid, run_key, since_ms
-- evaluated: first
-- until_ms: null: it still is
-- gpu_ms, cost: GPU time concerned; null: not a time
with signs as (
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.low_use
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.silent_gpus
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.standing_counters
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.peer_outliers
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.sudden_drops
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.host_causes
    union all
    select rule, cluster, node, gpu_uuid, run_key, start_at, end_at, gpu_ms, cost, confidence, evidence
    from marts.periodic_gaps
    union all
    select
        'loss_' || kind, cluster, null, null, run_key, step_at, step_at, null, null,
        case when is_lasting then 'Confirmed' else 'Likely' end,
        'from step ' || step || ' of attempt ' || attempt || ' on, in ' || counted(steps, 'logged step')
            || coalesce('; the last finite loss was ' || round(last_finite_loss, 3) || ' at step ' || last_finite_step, '')
    from marts.loss_anomalies
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
