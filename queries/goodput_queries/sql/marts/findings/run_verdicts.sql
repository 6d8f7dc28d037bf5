-- The largest finding about the run of the scope, by the GPU time that it lost: what its page says first; without a loss that is
-- large enough, GPUs that it never used. None without a run in the scope, or without such a finding. Time that is not classified is
-- no loss.
-- grain: run_key
-- access: team
-- evaluated: first
-- rule, finding_key, title, kind, severity, confidence, evidence, what_to_do: of the finding; of one on a node that failed
--  evidence, gpu_ms and cost are those of this run
-- cause: of an ending, and the GPU or node that is named for a wait; null: the title says it
-- gpu_ms, cost, share_ratio: GPU time that the run lost by it, of its allocated time
with hangs as (
    select
        run_key,
        arg_max(coalesce('rank ' || culprit_rank || ' ', '') || evidence, (since_at, hang_key)) as evidence
    from marts.hangs
    where is_root
    group by run_key
),

losses as (
    select
        losses.rule, losses.cluster, losses.node, losses.gpu_uuid, losses.run_key, losses.team, losses.gpu_ms, losses.cost,
        losses.share_ratio, losses.cases, losses.severity, losses.confidence, losses.cause, losses.what_to_do,
        null::varchar as evidence
    from marts.loss_findings as losses
    inner join reference.finding_rules as rules using (rule)
    where rules.returns <> 'none'
),

candidates as (
    select * from losses
    union all
    select
        rule, cluster, node, gpu_uuid, run_key, null, gpu_ms, cost, gpu_ms / nullif(held_gpu_ms, 0), 1,
        case when gpu_ms < threshold('finding_warning_ms') then 'info' else 'warning' end,
        confidence, null, null, evidence
    from marts.low_use
    where rule = 'unused_gpus' and run_key = getvariable('scope_run') and not exists (from losses)
),

gpus as (
    select gpu_uuid, max(gpu_index) as gpu_index from intermediate.int_gpu_units group by gpu_uuid
)

select
    getvariable('scope_run')::varchar as run_key,
    losses.rule,
    finding_key(
        losses.rule, losses.cluster, losses.node, losses.gpu_uuid, losses.run_key,
        case when losses.run_key is null then coalesce(losses.team, '') else '' end
    ) as finding_key,
    rules.title,
    rules.kind,
    losses.severity,
    coalesce(
        losses.cause,
        nullif(concat_ws(
            ', ', losses.node,
            case when losses.gpu_uuid is not null then 'GPU ' || coalesce(gpus.gpu_index::varchar, losses.gpu_uuid) end
        ), '')
    ) as cause,
    losses.confidence,
    coalesce(
        losses.evidence,
        case when losses.rule = 'hang' then hangs.evidence end,
        loss_evidence(
            rules.kind, getvariable('scope_run')::varchar, losses.gpu_uuid, losses.gpu_ms, losses.share_ratio, losses.cases,
            null
        )
    ) as evidence,
    coalesce(losses.what_to_do, rules.action) as what_to_do,
    losses.gpu_ms,
    losses.cost,
    losses.share_ratio
from candidates as losses
inner join reference.finding_rules as rules using (rule)
left join gpus using (gpu_uuid)
left join hangs on losses.run_key = hangs.run_key
where getvariable('scope_run') is not null
qualify row_number() over (order by losses.gpu_ms desc, losses.rule, losses.gpu_uuid, losses.node) = 1
