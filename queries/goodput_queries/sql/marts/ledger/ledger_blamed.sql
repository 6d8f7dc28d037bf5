-- The ledger of the scope with the cause of each part (reference.blame_by_cause), in both grains of ledger_in_scope:
-- by GPU and by node.
-- grain: none (parts of hours)
-- access: team
-- is_by_node: the row's grain is the node
-- blame: own, platform, use, unallocated, reservation, unsettled
-- gpu_ms: milliseconds of a whole GPU
-- cost: null where the rate card has no price
select
    scoped.*,
    blame_of(scoped.category, categories.blame, waits.blame, endings.blame) as blame
from marts.ledger_in_scope as scoped
inner join reference.gpu_second_categories as categories using (category)
left join intermediate.int_attempt_causes as endings using (attempt_key)
left join reference.blame_by_cause as waits on waits.applies_to = 'wait' and scoped.phase = waits.cause
