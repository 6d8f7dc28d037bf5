-- The ledger of the scope by node, each row with its owner and price: a tenth of the rows of ledger_scoped with the
-- same sums, for pages.
-- grain: none (parts of hours)
-- access: team
with owned as not materialized (
    select * exclude (gpu_uuid, gpu_instance) from marts.ledger_owned where in_node_grain(is_by_node)
)

from priced('owned')
