-- Nodes of an attempt that went down in the trouble before its bad end.
-- grain: attempt_key, cluster, node
-- at_ms: when the first such state began
with downs as (
    select cluster, node, start_ms, reason from staging.stg_node_states where state = 'down'
),

places as (
    select distinct job_run_key, cluster, node
    from intermediate.int_holds
    semi join downs using (cluster, node)
)

select
    attempts.attempt_key,
    downs.cluster,
    downs.node,
    min(downs.start_ms) as at_ms,
    any_value(downs.reason order by downs.start_ms) as reason
from downs
inner join places using (cluster, node)
inner join intermediate.int_failed_attempts as attempts
    on places.job_run_key = attempts.job_run_key
    and downs.start_ms between attempts.trouble_from_ms and attempts.trouble_until_ms
group by attempts.attempt_key, downs.cluster, downs.node
