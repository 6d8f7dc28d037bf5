-- The GPUs of runs: ledger and mean telemetry of each while it was allocated to the run.
-- grain: run_key, gpu_uuid
-- evaluated: first
-- access: team
-- gpu_ms: allocated; the sum of the _ms columns that follow
-- step_ms: useful time, the numerator of goodput
-- slowdown_ms: throttling and waits for stragglers
-- lost_ms: lost work, fault stalls and attempts that retained no step
-- idle_held_ms: allocated but idle
-- unsettled_ms: at risk, active without job telemetry, unknown
-- overhead_ms: all else: start-up, restore, checkpoints, input, declared work, waits for the gang, suspension, teardown
-- uncorrected_errors: of the GPU's memory in the hours that the run had it, whether it failed or not; null: none is known
-- power_w, sm_active_ratio, tensor_active_ratio, gpu_temperature_c: means over the hold's readings
with ledger as (
    select
        run_key,
        gpu_uuid,
        any_value(node) as node,
        sum(gpu_ms)::bigint as gpu_ms,
        coalesce(sum(gpu_ms) filter (where is_useful(category)), 0)::bigint as step_ms,
        coalesce(sum(gpu_ms) filter (where category in ('throttled', 'straggler_wait')), 0)::bigint as slowdown_ms,
        coalesce(sum(gpu_ms) filter (
            where category in ('lost_work', 'fault_stall', 'failed_without_progress')
        ), 0)::bigint as lost_ms,
        coalesce(sum(gpu_ms) filter (where category = 'idle_held'), 0)::bigint as idle_held_ms,
        coalesce(sum(gpu_ms) filter (where is_unsettled(category)), 0)::bigint as unsettled_ms
    from marts.ledger_scoped
    where run_key is not null
    group by run_key, gpu_uuid
),

holds as (
    select owners.run_key, holds.gpu_uuid, holds.start_ms, coalesce(holds.end_ms, clusters.as_of_ms) as end_ms
    from intermediate.int_holds as holds
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join intermediate.int_clusters as clusters on holds.cluster = clusters.cluster
    where
        of_teams(owners.team)
        and in_run(owners.run_key)
),

telemetry as (
    select
        holds.run_key,
        holds.gpu_uuid,
        avg(columns(['power_w', 'sm_active_ratio', 'tensor_active_ratio', 'gpu_temperature_c']))
    from holds
    inner join staging.stg_gpu_samples as samples
        on holds.gpu_uuid = samples.gpu_uuid
        and samples.ts >= from_ms(holds.start_ms)
        and samples.ts < from_ms(holds.end_ms)
    group by holds.run_key, holds.gpu_uuid
),

memory_errors as (
    select run_key, gpu_uuid, sum(errors)::bigint as uncorrected_errors
    from (
        select distinct holds.run_key, errors.*
        from holds
        inner join intermediate.int_uncorrected_errors as errors using (gpu_uuid)
        where in_window(hour_ms, hour_ms + one_hour_ms()) and hour_ms + one_hour_ms() > start_ms and hour_ms < end_ms
    )
    group by run_key, gpu_uuid
)

select
    ledger.run_key,
    ledger.gpu_uuid,
    ledger.node,
    units.gpu_index,
    ledger.* exclude (run_key, gpu_uuid, node),
    ledger.gpu_ms - ledger.step_ms - ledger.slowdown_ms - ledger.lost_ms - ledger.idle_held_ms
        - ledger.unsettled_ms as overhead_ms,
    memory_errors.uncorrected_errors,
    telemetry.* exclude (run_key, gpu_uuid)
from ledger
left join telemetry using (run_key, gpu_uuid)
left join memory_errors using (run_key, gpu_uuid)
left join intermediate.int_gpu_names as units using (gpu_uuid)
