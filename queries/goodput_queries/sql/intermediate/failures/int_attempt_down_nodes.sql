-- Nodes of an attempt that went down in the trouble before its bad end.
-- grain: attempt_key, cluster, node
-- at_ms: when the first such state began
select
    attempts.attempt_key,
    holds.cluster,
    holds.node,
    min(states.start_ms) as at_ms,
    any_value(states.reason order by states.start_ms) as reason
from intermediate.int_failed_attempts as attempts
inner join (select distinct job_run_key, cluster, node from intermediate.int_holds) as holds using (job_run_key)
inner join staging.stg_node_states as states
    on holds.cluster = states.cluster
    and holds.node = states.node
    and states.state = 'down'
    and states.start_ms between attempts.trouble_from_ms and attempts.trouble_until_ms
group by attempts.attempt_key, holds.cluster, holds.node
