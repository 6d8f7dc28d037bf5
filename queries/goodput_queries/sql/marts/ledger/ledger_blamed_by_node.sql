-- The ledger of the scope by node with the cause of each part (reference.blame_by_cause): the same sums as ledger_blamed.
-- grain: none (parts of hours)
-- access: team
with scoped as not materialized (
    from marts.ledger_scoped_by_node
),

endings as (
    select attempt_key, blame from intermediate.int_attempt_causes
)

from blamed('scoped', 'endings')
