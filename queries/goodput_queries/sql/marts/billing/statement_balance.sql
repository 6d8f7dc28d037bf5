-- Reconciliation of a statement: ledger, inventory and scheduler totals of the scope's window.
-- grain: cluster
-- evaluated: first
-- ledger_ms: all categories of marts.ledger_scoped_by_node; ledger_held_ms: of those the ones of allocated time
-- capacity_ms: GPU time in the inventory
-- scheduler_held_ms: in the scheduler's units (marts.scheduler_reconciliation)
with ledger as (
    select
        cluster,
        sum(gpu_ms)::bigint as ledger_ms,
        coalesce(sum(gpu_ms) filter (where categories.group = 'held'), 0)::bigint as ledger_held_ms
    from marts.ledger_scoped_by_node
    inner join reference.gpu_second_categories as categories using (category)
    group by cluster
),

capacity as (
    select cluster, sum(capacity_ms)::bigint as capacity_ms from marts.capacity group by cluster
)

select
    ledger.*,
    capacity.capacity_ms,
    round(scheduler.held_gpu_s * 1000)::bigint as scheduler_held_ms
from ledger
left join capacity using (cluster)
left join marts.scheduler_reconciliation as scheduler using (cluster)
