-- How a job run used each of its whole GPUs by hour, by its ten minutes outside start-up (intermediate.int_held_bins).
-- grain: job_run_key, gpu_uuid, hour_ms
-- materialised: hourly of the ledger, since pages ask it of all runs, whose ten minutes take a second
-- first_ms, last_ms: first and last moment of these ten minutes; bins: how many
-- use_ratio ... sm_occupancy_ratio: sum, and n of them that have it
-- most_ratio: highest activity in a sample; memory_peak_bytes: most memory in use
with readings as not materialized (
    from intermediate.int_gpu_metrics where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
)

from held_hours('readings', build_from_ms(), build_to_ms())
