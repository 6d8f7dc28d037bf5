-- The rows of the ledger by GPU that are in the scope, with their owners.
-- grain: none (parts of hours)
-- access: team
-- start_ms, end_ms: first and last of it in the hour; from_ms, until_ms: of the segment or stretch that it is in
-- is_amount: it is not the whole of [from_ms, until_ms), but gpu_ms of it
select
    hours.*,
    owners.* exclude (job_run_key, cluster, state)
from intermediate.int_gpu_hours as hours
left join intermediate.int_job_run_owners as owners using (job_run_key)
where
    in_scope(
        hours.cluster, hours.node, hours.gpu_uuid, hours.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
