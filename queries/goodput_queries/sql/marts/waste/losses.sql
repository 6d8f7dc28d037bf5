-- Losses of the scope: GPU time that each run lost to each category, and free or unavailable time by cluster; each with
-- cause, evidence, confidence and recommended action.
-- grain: cluster, run_key, category, blame
-- access: team
-- gpus: number of GPUs that lost the time
-- confidence: Confirmed, Likely, Not confirmed
with counted as (
    select cluster, run_key, category, blame, count(distinct gpu_uuid) as gpus
    from marts.ledger_blamed
    group by all
)

select
    losses.* exclude (first_at, last_at, cause, confidence, evidence, fix),
    counted.gpus,
    losses.first_at,
    losses.last_at,
    losses.cause,
    losses.confidence,
    losses.evidence,
    losses.fix
from marts.loss_causes as losses
inner join counted
    on losses.cluster = counted.cluster
    and losses.run_key is not distinct from counted.run_key
    and losses.category = counted.category
    and losses.blame = counted.blame
