-- The rows of the ledger that are in the scope, with their owners, twice over: GPU by GPU, and with the GPUs of each
-- node summed up (in_node_grain). Whole hours come from the hourly roll-ups, hours that the window cuts from the segments, whose
-- stretches of steps are counted step by step where it cuts ten minutes.
-- grain: none (parts of hours)
-- access: team
-- is_by_node: of which of the two the row is
-- gpu_uuid, gpu_instance: null where GPUs are summed up by node
-- start_ms, end_ms: first and last of it in the hour
-- from_ms, until_ms: of the segment or stretch that it is in; of a node those of the first and last
-- is_amount: it is not the whole of [from_ms, until_ms), but gpu_ms of it; of a node null
with gpu_hours as not materialized (
    select
        cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms, first_ms as start_ms, last_ms as end_ms, gpu_ms,
        start_ms as from_ms, end_ms as until_ms, is_amount
    from marts.ledger_pieces
    where is_whole_hour(hour_ms)
    union all
    from intermediate.int_cut_hours
),

node_hours as not materialized (
    select
        cluster, node, null as gpu_uuid, null as gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms, start_ms, end_ms, gpu_ms, start_ms as from_ms, end_ms as until_ms, null as is_amount
    from (
        from marts.ledger_hourly_by_node where is_whole_hour(hour_ms)
        union all by name
        from intermediate.int_cut_hours_by_node
    )
    where chosen_gpu_uuid() is null
),

rows_ as (
    select false as is_by_node, * from gpu_hours
    union all
    select true, * from node_hours
)

select
    rows_.*,
    owners.* exclude (job_run_key, cluster, state)
from rows_
left join intermediate.int_job_run_owners as owners using (job_run_key)
where
    in_scope(
        rows_.cluster, rows_.node, rows_.gpu_uuid, rows_.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
