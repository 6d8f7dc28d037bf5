-- The largest finding about each run of the scope, by the GPU time that the run lost: what its page says first, and its row
-- among the runs; without a loss that is large enough, GPUs that it never used. No row without such a finding. Time that is not
-- classified is no loss.
-- grain: run_key
-- access: team
-- evaluated: first
-- rule, finding_key, title, kind, confidence, evidence, what_to_do: of the finding; of one on a node that failed
--  evidence, gpu_ms and cost are those of this run
-- verdict: a line: the title, and the cause in parentheses
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

sizes as (select run_key, max(gpus) as gpus from intermediate.int_attempts group by run_key),

losses as (
    select
        rule, cluster, node, gpu_uuid, run_key, of_run_key,
        case when run_key is null then team end as team,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(cost) as cost,
        coalesce(sum(gpu_ms) filter (where is_sure), 0) as sure_ms,
        count(distinct case_key) as cases,
        arg_max(cause, gpu_ms) as cause,
        arg_max(what_to_do, gpu_ms) as what_to_do,
        any_value(run_base_ms) as base_ms
    from marts.loss_parts
    where of_run_key is not null and rule <> 'unclassified_time'
    group by all
),

large_losses as (
    select losses.*
    from losses
    inner join sizes on losses.of_run_key = sizes.run_key
    inner join reference.finding_rules as rules using (rule)
    where is_large_loss(
        losses.rule, rules.kind, rules.least_share, losses.gpu_ms, losses.gpu_ms / losses.base_ms, losses.base_ms, sizes.gpus
    )
),

candidates as (
    select
        losses.rule, losses.cluster, losses.node, losses.gpu_uuid, losses.run_key, losses.of_run_key, losses.team,
        losses.gpu_ms, losses.cost, losses.gpu_ms / nullif(losses.base_ms, 0) as share_ratio, losses.cases,
        loss_confidence(losses.rule, losses.gpu_ms, losses.sure_ms) as confidence,
        losses.cause,
        losses.what_to_do,
        null::varchar as evidence
    from large_losses as losses
    inner join reference.finding_rules as rules using (rule)
    union all
    select
        rule, cluster, node, gpu_uuid, run_key, run_key, null, gpu_ms, cost, gpu_ms / nullif(held_gpu_ms, 0), 1,
        confidence, null, null, evidence
    from marts.low_use
    where rule = 'unused_gpus' and run_key is not null and run_key not in (select of_run_key from large_losses)
)

select
    losses.of_run_key as run_key,
    losses.rule,
    finding_key(
        losses.rule, losses.cluster, losses.node, losses.gpu_uuid, losses.run_key,
        case when losses.run_key is null then coalesce(losses.team, '') else '' end
    ) as finding_key,
    rules.title || coalesce(' (' || causes.cause || ')', '') as verdict,
    rules.title,
    rules.kind,
    causes.cause,
    tested_confidence(losses.confidence, rules.right_ratio) as confidence,
    coalesce(
        losses.evidence,
        case when losses.rule = 'hang' then hangs.evidence end,
        loss_evidence(
            rules.kind, losses.of_run_key, losses.gpu_uuid, losses.gpu_ms, losses.share_ratio, losses.cases, null
        )
    ) as evidence,
    coalesce(losses.what_to_do, rules.action) as what_to_do,
    losses.gpu_ms,
    losses.cost,
    losses.share_ratio
from candidates as losses
inner join reference.finding_rules as rules using (rule)
left join intermediate.int_gpu_names as gpus using (gpu_uuid)
cross join lateral (
    select coalesce(
        losses.cause,
        nullif(concat_ws(
            ', ', losses.node,
            case when losses.gpu_uuid is not null then 'GPU ' || coalesce(gpus.gpu_index::varchar, losses.gpu_uuid) end
        ), '')
    ) as cause
) as causes
left join hangs on losses.of_run_key = hangs.run_key
qualify row_number() over (
    partition by losses.of_run_key order by losses.gpu_ms desc, losses.rule, losses.gpu_uuid, losses.node
) = 1
