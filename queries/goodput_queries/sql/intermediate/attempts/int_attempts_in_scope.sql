-- Attempts with GPUs that the scope's window, owners and place meet, with their time in the window.
-- grain: attempt_key
-- start_ms, end_ms: inside the window; a running attempt ends with its cluster's evidence
-- last_ms: end of the attempt itself; null: it runs
select
    attempts.cluster,
    attempts.attempt_key,
    attempts.gpus,
    scope_start(attempts.start_ms) as start_ms,
    scope_end(least(coalesce(attempts.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms,
    attempts.end_ms as last_ms
from intermediate.int_attempts as attempts
inner join intermediate.int_clusters as clusters using (cluster)
where
    attempts.gpus > 0
    and in_window(attempts.start_ms, attempts.end_ms)
    and in_cluster(attempts.cluster)
    and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
    and (
        (chosen_node() is null and chosen_gpu_uuid() is null)
        or attempts.job_run_key in (
            select job_run_key from intermediate.int_holds
            where
                node = coalesce(chosen_node(), node)
                and gpu_uuid = coalesce(chosen_gpu_uuid(), gpu_uuid)
        )
    )
