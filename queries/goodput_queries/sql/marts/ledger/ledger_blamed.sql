-- The ledger of the scope with who caused each part of it (reference.blame_by_cause), twice over as
-- ledger_in_scope is: GPU by GPU, and with the GPUs of each node summed up.
-- grain: none (parts of hours)
-- is_by_node: of which of the two the row is
-- blame: own, platform, use, unallocated, reservation, unsettled
-- gpu_ms: milliseconds of a whole GPU
-- usd: null where the rate card has no price
select
    scoped.*,
    blame_of(scoped.category, categories.blame, waits.blame, endings.blame) as blame
from marts.ledger_in_scope as scoped
inner join reference.gpu_second_categories as categories using (category)
left join intermediate.int_attempt_causes as endings using (attempt_key)
left join reference.blame_by_cause as waits on waits.applies_to = 'wait' and scoped.phase = waits.cause
