-- Nodes of the scope ranked by what they cost: errors, failed attempts, time with thermal slowdown, GPU time lost, and what to do.
-- grain: cluster, node
-- skip_if_empty: marts.ledger_hourly_by_node, marts.node_verdicts, marts.health_by_node_day
-- place: rank by cost lost (GPU time, where there is no price), then errors; nodes with nothing share the end
-- errors: incidents of hardware or driver; fatal_errors: of them those that stop the GPU or the node
-- ecc_uncorrected, row_remaps: rise of the counters; null: not read
-- remap_failed_gpus: GPUs whose memory can remap no more; null: not read
-- thermal_s: GPU time with a thermal slowdown; null: not read
-- failures: outages with the node down that began in the window; down_ms: GPU time down
-- failed_attempts: attempts that ended in the window with an infrastructure cause that evidence puts on this node
-- caused_ms, caused_cost: GPU time that runs lost by these attempts, on whatever node; shared by the nodes it is put on;
--  null where these runs report no steps
-- lost_ms, lost_cost: infrastructure-caused waste on this node, whatever node caused it; the nodes add up to the fleet
-- code, last_at: Xid of the worst incident, the latest of equals; when the latest incident was
-- verdict: Replace, Drain, Watch by reference.thresholds; null: no rule applies; verdict_reason: the rule that applies
-- what_to_do: the vendor's recommended action for the Xid
with blamed as materialized (
    select cluster, node, attempt_key, category, blame, gpu_ms, cost
    from marts.ledger_blamed_by_node
),

ledger as (
    select
        cluster,
        node,
        coalesce(sum(gpu_ms) filter (where category = 'down'), 0)::bigint as down_ms,
        coalesce(sum(gpu_ms) filter (where is_loss), 0)::bigint as lost_ms,
        case when count_if(is_loss) = 0 then 0.0 else sum(cost) filter (where is_loss) end as lost_cost
    from (
        select *, blame = 'platform' and kind_of(category, kind) = 'badput' as is_loss
        from blamed
        inner join (select category, kind from reference.gpu_second_categories) using (category)
    )
    group by cluster, node
),

outages as (
    select cluster, node, count(*) as failures
    from marts.node_outages
    where state = 'down' and start_at >= from_ms(scope_from_ms())
    group by cluster, node
),

days as (
    select
        cluster,
        node,
        sum(value) filter (where kind = 'ecc_uncorrected') as ecc_uncorrected,
        sum(value) filter (where kind = 'row_remap') as row_remaps,
        sum(value) filter (where kind = 'thermal') as thermal_s
    from marts.health_by_node_day
    group by cluster, node
),

losses as (
    select attempt_key, sum(gpu_ms) as gpu_ms, sum(cost) as cost
    from blamed
    where
        blame = 'platform'
        and category in ('fault_stall', 'lost_work', 'failed_without_progress', 'teardown')
        and attempt_key in (select attempt_key from marts.failure_nodes)
    group by attempt_key
),

-- without steps nobody knows what an attempt lost
caused as (
    select
        culprits.cluster,
        culprits.node,
        sum(case when attempts.has_events then coalesce(losses.gpu_ms, 0) else losses.gpu_ms end * culprits.share)::bigint
            as caused_ms,
        sum(case when attempts.has_events and losses.gpu_ms is null then 0 else losses.cost end * culprits.share) as caused_cost
    from marts.failure_nodes as culprits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    left join losses using (attempt_key)
    group by culprits.cluster, culprits.node
),

joined as (
    select
        ledger.*,
        coalesce(columns(['errors', 'fatal_errors', 'failed_attempts']), 0),
        days.ecc_uncorrected,
        days.row_remaps,
        verdicts.remap_failed_gpus,
        days.thermal_s,
        coalesce(outages.failures, 0) as failures,
        case when caused.node is null then 0 else caused.caused_ms end as caused_ms,
        case when caused.node is null then 0 else caused.caused_cost end as caused_cost,
        verdicts.code,
        verdicts.last_at,
        verdicts.what_to_do,
        verdicts.verdict,
        verdicts.verdict_reason
    from ledger
    left join marts.node_verdicts as verdicts using (cluster, node)
    left join outages using (cluster, node)
    left join days using (cluster, node)
    left join caused using (cluster, node)
)

select
    rank() over (order by coalesce(caused_cost, 0) desc, coalesce(caused_ms, 0) desc, errors + failures desc, lost_ms desc) as place,
    *
from joined
