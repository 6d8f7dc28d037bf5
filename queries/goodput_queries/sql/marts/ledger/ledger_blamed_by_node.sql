-- The ledger of the scope by node with the cause of each part (reference.blame_by_cause): the same sums as ledger_blamed.
-- grain: none (parts of hours)
-- access: team
-- evaluated: first
-- reads: intermediate.int_attempt_causes, reference.blame_by_cause, reference.gpu_second_categories
-- blame: own, platform, use, unallocated, reservation, unsettled
-- gpu_ms: milliseconds of a whole GPU
-- cost: null where the rate card has no price
with scoped as not materialized (
    from marts.ledger_scoped_by_node
)

from blamed('scoped')
