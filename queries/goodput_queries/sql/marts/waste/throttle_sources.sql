-- Whether any source reports throttling in the scope: without one, an empty list of episodes proves nothing.
-- grain: none (one row)
-- evaluated: first
-- access: everyone
-- has_readings: GPUs of the scope were read in the window
-- has_reasons: readings carry clock event reasons
-- has_counters: an exporter counts throttled time
with gpus as (
    select gpu_uuid from intermediate.int_gpu_units where in_place(cluster, node, gpu_uuid, gpu_model)
),

-- without a plan of its own each question stops at the first reading
samples as not materialized (
    select clocks_event_reasons
    from staging.stg_gpu_samples
    where
        ts >= from_ms(scope_from_ms())
        and ts < scope_to_at()
        and gpu_uuid in (from gpus)
)

select
    exists (from samples) as has_readings,
    exists (from samples where clocks_event_reasons is not null) as has_reasons,
    exists (
        from staging.stg_gpu_samples_other
        where
            metric similar to 'throttle_.*_s'
            and ts >= from_ms(scope_from_ms())
            and ts < scope_to_at()
            and gpu_uuid in (from gpus)
    ) as has_counters
