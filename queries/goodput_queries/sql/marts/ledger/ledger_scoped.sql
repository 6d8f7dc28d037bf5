-- The ledger of the scope by GPU, each row with its owner and price. Every other number about GPU time is a sum over
-- this view, or over ledger_scoped_by_node with the same sums.
-- grain: none (parts of hours)
-- access: team
with owned as not materialized (
    from marts.ledger_owned
)

from priced('owned')
