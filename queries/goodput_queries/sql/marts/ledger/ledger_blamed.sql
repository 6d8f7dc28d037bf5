-- The ledger of the scope by GPU with the cause of each part (reference.blame_by_cause).
-- grain: none (parts of hours)
-- access: team
with scoped as not materialized (
    from marts.ledger_scoped
),

endings as (
    select attempt_key, blame from intermediate.int_attempt_causes
)

from blamed('scoped', 'endings')
