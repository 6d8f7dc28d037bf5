-- Reservations of nodes, with times in epoch ms.
-- grain: none (sources may overlap)
-- cluster: null: any
-- nodes: null: the source does not say which
-- end_ms: null: open
select
    cluster,
    nodes,
    owner,
    coalesce(flags ilike '%MAINT%', false) as is_maintenance,
    to_ms(start_at) as start_ms,
    to_ms(end_at) as end_ms
from raw.reservations
