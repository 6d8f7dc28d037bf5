-- The ledger of the scope by node, each row with its owner and price: a tenth of the rows of ledger_scoped with the
-- same sums, for pages. Where a GPU is chosen its rows are those of ledger_scoped: what one GPU did its node's sum does not say.
-- grain: none (parts of hours)
-- access: team
-- start_ms, end_ms: first and last of it in the hour
-- from_ms, until_ms: of the segment or stretch that it is in; of a node those of the first and last
-- is_amount: it is not the whole of [from_ms, until_ms), but gpu_ms of it; of a node null
with hours as not materialized (
    select *, start_ms as from_ms, end_ms as until_ms, null as is_amount
    from marts.ledger_hourly_by_node
    where is_whole_hour(hour_ms) and chosen_gpu_uuid() is null
    union all by name
    from intermediate.int_cut_hours_by_node
),

owned as not materialized (
    select
        hours.*,
        owners.* exclude (job_run_key, cluster, state)
    from hours
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        in_scope(
            hours.cluster, hours.node, chosen_gpu_uuid(), hours.gpu_model,
            owners.team, owners.user_name, owners.run_key, owners.partition
        )
)

from priced('owned')
