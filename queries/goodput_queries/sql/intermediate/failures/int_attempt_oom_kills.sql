-- Nodes of an attempt on which the kernel's out-of-memory killer ended a process in the trouble before its bad end.
-- grain: attempt_key, node
-- kills: number of processes; process_name, at_ms: of the first
with kills as (select * from staging.stg_node_events where kind = 'oom_kill'),

places as (
    select distinct job_run_key, cluster, node
    from intermediate.int_holds
    semi join kills using (cluster, node)
)

select
    attempts.attempt_key,
    kills.node,
    count(distinct (kills.at_ms, kills.pid)) as kills,
    arg_min(kills.process_name, kills.at_ms) as process_name,
    min(kills.at_ms) as at_ms
from kills
inner join places using (cluster, node)
inner join intermediate.int_failed_attempts as attempts
    on places.job_run_key = attempts.job_run_key
    and kills.at_ms between attempts.trouble_from_ms and attempts.trouble_until_ms
group by attempts.attempt_key, kills.node
