-- The ledger of the scope by node, each row with its owner and price: a tenth of the rows of ledger_scoped with the
-- same sums, for pages.
-- grain: none (parts of hours)
-- access: team
-- gpu_ms: milliseconds of a whole GPU
-- cost: null where the rate card has no price
select * exclude (is_by_node, gpu_uuid, gpu_instance)
from marts.ledger_in_scope
where is_by_node
