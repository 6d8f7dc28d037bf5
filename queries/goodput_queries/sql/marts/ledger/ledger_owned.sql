-- The rows of the ledger that are in the scope, with their owners, twice over: GPU by GPU, and with the GPUs of each
-- node summed up. Whole hours come from the hourly roll-ups, hours that the window cuts from the segments.
-- grain: none (parts of hours)
-- access: team
-- is_by_node: of which of the two the row is
-- gpu_uuid, gpu_instance: null in the hours summed up by node
-- start_ms, end_ms: first and last of it in the hour
-- gpu_ms: milliseconds of a whole GPU
with window_ as (
    select
        coalesce(getvariable('scope_from_ms')::bigint, 0) as from_ms,
        coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807) as to_ms
),

cut_hours as not materialized (
    select
        cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms,
        greatest(start_ms, window_.from_ms) as start_ms,
        least(end_ms, window_.to_ms) as end_ms,
        share_ms(
            greatest(start_ms, window_.from_ms), least(end_ms, window_.to_ms), share_lo, share_hi, share_of
        ) as gpu_ms
    from marts.ledger_segments
    cross join window_
    where
        (
            hour_ms = coalesce(getvariable('scope_from_ms')::bigint, 0) // 3600000 * 3600000
            or hour_ms = coalesce(getvariable('scope_to_ms')::bigint, 0) // 3600000 * 3600000
        )
        and not (hour_ms >= window_.from_ms and hour_ms <= window_.to_ms - 3600000)
        and start_ms < window_.to_ms
        and end_ms > window_.from_ms
),

gpu_hours as not materialized (
    select
        cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms, start_ms, end_ms, gpu_ms
    from marts.ledger_pieces
    where is_whole_hour(hour_ms)
    union all
    from cut_hours
),

-- what one GPU did its node's sum does not say
node_hours as not materialized (
    select
        cluster, node, null as gpu_uuid, null as gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms, start_ms, end_ms, gpu_ms
    from marts.ledger_hourly_by_node
    where is_whole_hour(hour_ms) and getvariable('scope_gpu_uuid') is null
    union all
    from cut_hours
    where getvariable('scope_gpu_uuid') is null
    union all
    from gpu_hours
    where getvariable('scope_gpu_uuid') is not null
),

rows_ as (
    select false as is_by_node, * from gpu_hours
    union all
    select true, * from node_hours
)

select
    rows_.is_by_node,
    rows_.cluster,
    rows_.node,
    rows_.gpu_uuid,
    rows_.gpu_instance,
    rows_.gpu_model,
    rows_.mig_profile,
    rows_.job_run_key,
    rows_.attempt_key,
    owners.run_key,
    owners.run_id,
    owners.job_id,
    owners.job_name,
    owners.team,
    owners.user_name,
    owners.partition,
    owners.qos,
    rows_.category,
    rows_.phase,
    rows_.hour_ms,
    rows_.start_ms,
    rows_.end_ms,
    rows_.gpu_ms
from rows_
left join intermediate.int_job_run_owners as owners using (job_run_key)
where
    in_scope(
        rows_.cluster, rows_.node, rows_.gpu_uuid, rows_.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
