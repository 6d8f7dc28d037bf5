-- Job runs that had GPUs of a node while a link of it was down, or in the interval in which it went down.
-- grain: cluster, node, kind, device, port, start_at, job_run_key
-- gpus: number of the node's GPUs that it had
select
    events.* exclude (after_at, is_seen_down),
    holds.job_run_key,
    any_value(columns(['run_key', 'run_id', 'job_name', 'team', 'user_name'])),
    count(distinct holds.gpu_uuid) as gpus
from marts.link_events as events
inner join intermediate.int_holds as holds
    on events.cluster = holds.cluster
    and events.node = holds.node
    and holds.start_ms <= coalesce(to_ms(events.end_at), to_ms(events.start_at))
    and coalesce(holds.end_ms, forever_ms()) > to_ms(events.after_at)
left join intermediate.int_job_run_owners as owners using (job_run_key)
group by all
