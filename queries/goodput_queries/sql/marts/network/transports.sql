-- Transports that NCCL uses, by node and run, as its log says. The log has no clock: those that belong to no attempt are of
-- no window, and always shown.
-- grain: cluster, node, run_key, transport
-- evaluated: first
-- run_key, run_id, job_name: null: not known
-- processes: number of them; nodes: of the largest of their communicators, null: not known
-- is_fallback: sockets carry the traffic of a communicator; has_infiniband: the node has an InfiniBand or RoCE port that
--  was up, or another process of the cluster uses one; null: no port was read
with owners as (
    select
        run_key,
        any_value(columns(['run_id', 'job_name', 'team', 'user_name', 'partition']))
    from intermediate.int_job_run_owners
    group by run_key
),

ports as (
    select cluster, node, bool_or(up_samples > 0) as has_infiniband
    from intermediate.int_link_hours
    where kind = 'infiniband'
    group by cluster, node
),

others as (
    select cluster, bool_or(starts_with(transport, 'NET/IB')) as has_infiniband
    from staging.stg_comm_transports
    group by cluster
)

select
    transports.cluster,
    transports.node,
    attempts.run_key,
    any_value(owners.run_id) as run_id,
    any_value(owners.job_name) as job_name,
    transports.transport,
    count(distinct transports.pid) as processes,
    max(transports.nodes) as nodes,
    starts_with(transports.transport, 'NET/Socket') as is_fallback,
    bool_or(coalesce(ports.has_infiniband, nullif(others.has_infiniband, false))) as has_infiniband
from staging.stg_comm_transports as transports
left join intermediate.int_process_attempts as ranks using (cluster, node, pid)
left join intermediate.int_attempts as attempts using (attempt_key)
left join owners on attempts.run_key = owners.run_key
left join ports on transports.cluster = ports.cluster and transports.node = ports.node
left join others on transports.cluster = others.cluster
where
    in_place(transports.cluster, transports.node, null, null)
    and of_owner(owners.team, owners.user_name, attempts.run_key, owners.partition)
    and (attempts.attempt_key is null or in_window(attempts.start_ms, attempts.end_ms))
group by transports.cluster, transports.node, attempts.run_key, transports.transport
