-- what the scheduler says, before the ledger has time of it: a job may still have the GPUs
-- skip_if_empty: raw.node_states
select
    cluster,
    node,
    start_at,
    end_at,
    case when is_allocated then 'allocated' end as effect,
    is_over,
    'Confirmed' as confidence,
    null as evidence,
    outage_text(state, sources, reason) || case when is_allocated then ', while jobs had GPUs of it' else '' end as cause
from marts.node_outages
where state = 'down' and of_owner(null, null, null, null)
