-- Repairs of nodes in the scope's window: from the first sign that a node was broken, by way of whoever took it out of
-- service, to its return, and what each part cost. Outages with less than ten minutes between them are one repair.
-- grain: cluster, node, start_at
-- access: team
-- skip_if_empty: raw.node_states
-- broken_at: first sign of the fault: the node went down, or a fatal error of its GPUs within a day before; null: none known
-- sign: what it was; reason: of the states, as the scheduler has them
-- start_at: when it was first out of service; acted_at: when somebody or something drained it; null: nobody did
-- acted_by: who drained it, as the scheduler has it; actor: person, scheduler or controller (a health check or operator
--  program, by its name or reason); null: not known
-- end_at: its return to service; null: not back yet
-- untouched_ms, untouched_cost: GPU time down before anybody acted; repair_ms, repair_cost: GPU time out of service after it;
--  costs are null where the rate card has no price
-- failures_after: attempts that ended in the week after its return, with an infrastructure cause that evidence puts on
--  this node, as far as the window has them
-- verdict: not back, no progress (the same node failed again within the watched time), no failure since
with outages as (
    select
        found.cluster,
        found.node,
        found.state,
        found.is_over,
        found.reason,
        epoch_ms(found.start_at) as start_ms,
        coalesce(epoch_ms(found.end_at), greatest(clusters.as_of_ms, epoch_ms(found.start_at))) as until_ms
    from marts.node_outages as found
    inner join intermediate.int_clusters as clusters on found.cluster = clusters.cluster
),

marked as (
    select
        *,
        coalesce(
            start_ms > max(until_ms) over (
                partition by cluster, node order by start_ms, until_ms
                rows between unbounded preceding and 1 preceding
            ) + threshold('repair_gap_ms'),
            true
        ) as is_new
    from outages
),

numbered as (
    select
        *,
        count_if(is_new) over (
            partition by cluster, node order by start_ms, until_ms rows unbounded preceding
        ) as repair
    from marked
),

repairs as (
    select
        cluster,
        node,
        repair,
        min(start_ms) as start_ms,
        max(until_ms) as until_ms,
        min(start_ms) filter (where state = 'drained') as acted_ms,
        min(start_ms) filter (where state = 'down') as down_ms,
        arg_max(is_over, until_ms) as is_over,
        string_agg(distinct reason, '; ' order by reason) as reason
    from numbered
    group by cluster, node, repair
),

-- the first fatal error before it was out of service, and no repair in between
errors as (
    select
        repairs.cluster,
        repairs.node,
        repairs.repair,
        min(epoch_ms(incidents.start_at)) as error_ms,
        arg_min(coalesce('Xid ' || incidents.code, incidents.kind), incidents.start_at) as error
    from repairs
    inner join marts.gpu_incidents as incidents
        on repairs.cluster = incidents.cluster and repairs.node = incidents.node and incidents.severity in ('node_fatal', 'gpu_fatal')
        and epoch_ms(incidents.start_at)
        between repairs.start_ms - threshold('repair_look_back_ms') and repairs.start_ms
    left join repairs as earlier
        on repairs.cluster = earlier.cluster and repairs.node = earlier.node and earlier.repair = repairs.repair - 1
    where epoch_ms(incidents.start_at) > coalesce(earlier.until_ms, 0)
    group by repairs.cluster, repairs.node, repairs.repair
),

acts as (
    select
        repairs.cluster,
        repairs.node,
        repairs.repair,
        arg_min(states.user_name, (states.start_ms, states.user_name)) as acted_by,
        arg_min(states.reason, (states.start_ms, states.user_name)) as acted_reason
    from repairs
    inner join staging.stg_node_states as states
        on repairs.cluster = states.cluster and repairs.node = states.node and states.state = 'drained'
        and states.start_ms between repairs.acted_ms and repairs.until_ms
    group by repairs.cluster, repairs.node, repairs.repair
),

-- the ledger's time of these repairs, cut where somebody acted
parts as (
    select
        repairs.cluster,
        repairs.node,
        repairs.repair,
        ledger.gpu_ms,
        ledger.cost,
        -- a row of an hour says how much of it, not when; a node that is drained while it is down stays down
        case
            when repairs.acted_ms is null then 1
            when ledger.category = 'drained' or ledger.gpu_ms = 0 then 0
            else least(1, greatest(0, repairs.acted_ms - greatest(ledger.from_ms, repairs.start_ms)) / ledger.gpu_ms)
        end as before_ratio
    from marts.ledger_scoped as ledger
    inner join repairs
        on ledger.cluster = repairs.cluster and ledger.node = repairs.node
        and ledger.from_ms < repairs.until_ms and ledger.until_ms > repairs.start_ms
    where ledger.category in ('down', 'drained') and ledger.until_ms > ledger.from_ms
),

costs as (
    select
        cluster,
        node,
        repair,
        sum(gpu_ms)::bigint as gpu_ms,
        sum(round(gpu_ms * before_ratio))::bigint as untouched_ms,
        sum(cost) as cost,
        sum(cost * before_ratio) as untouched_cost
    from parts
    group by cluster, node, repair
),

failures as (
    select distinct culprits.cluster, culprits.node, culprits.attempt_key, attempts.end_ms
    from marts.failure_nodes as culprits
    inner join intermediate.int_attempts as attempts using (attempt_key)
),

counted as (
    select
        repairs.cluster,
        repairs.node,
        repairs.repair,
        count(*) as failures_after
    from repairs
    inner join failures
        on repairs.cluster = failures.cluster and repairs.node = failures.node
        and failures.end_ms > repairs.until_ms and failures.end_ms <= repairs.until_ms + threshold('repair_trial_ms')
    group by repairs.cluster, repairs.node, repairs.repair
)

select
    repairs.cluster,
    repairs.node,
    from_ms(least(repairs.down_ms, errors.error_ms)) as broken_at,
    case
        when least(repairs.down_ms, errors.error_ms) is null then null
        when errors.error_ms <= coalesce(repairs.down_ms, errors.error_ms) then errors.error
        else 'node down'
    end as sign,
    from_ms(repairs.start_ms) as start_at,
    from_ms(repairs.acted_ms) as acted_at,
    acts.acted_by,
    case
        when repairs.acted_ms is null then null
        when
            regexp_matches(
                coalesce(acts.acted_by, '') || ' ' || coalesce(acts.acted_reason, ''),
                '(?i)\b(nhc|healthcheck|health check|nvsentinel|node-?problem-?detector|gpud|operator|controller)\b'
            ) then 'controller'
        when acts.acted_by in ('slurm', 'root') or starts_with(acts.acted_by, 'slurm(') then 'scheduler'
        when acts.acted_by is not null then 'person'
    end as actor,
    case when repairs.is_over then from_ms(repairs.until_ms) end as end_at,
    coalesce(costs.untouched_ms, 0) as untouched_ms,
    coalesce(costs.gpu_ms - costs.untouched_ms, 0) as repair_ms,
    case when costs.gpu_ms is null then 0 else costs.untouched_cost end as untouched_cost,
    case when costs.gpu_ms is null then 0 else costs.cost - costs.untouched_cost end as repair_cost,
    repairs.reason,
    coalesce(counted.failures_after, 0) as failures_after,
    case
        when not repairs.is_over then 'not back'
        when counted.failures_after > 0 or lead(repairs.start_ms) over by_node < repairs.until_ms + threshold('repair_trial_ms')
            then 'no progress'
        else 'no failure since'
    end as verdict
from repairs
left join errors using (cluster, node, repair)
left join acts using (cluster, node, repair)
left join costs using (cluster, node, repair)
left join counted using (cluster, node, repair)
window by_node as (partition by repairs.cluster, repairs.node order by repairs.repair)
