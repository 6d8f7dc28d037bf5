-- Ten minutes of whole GPUs in the scope's window that were allocated to one job run from begin to end, with what rules about
-- anomalies ask of the roll-up. Where two sources read a GPU, those of the source with more samples. The scope's run,
-- team or node does not restrict it: a rule compares with peers first.
-- grain: gpu_uuid, start_ms
-- evaluated: first
-- skip_if_empty: intermediate.int_gpu_metrics
-- gang: number of its job run's GPUs of this model; null: of no known model
-- start_ms: start of the ten minutes, epoch ms
-- use_ratio: mean SM activity; without it engine activity, else the share of time with a kernel (use_metric says which)
-- use_max_ratio: of its samples
-- is_starting: in the first ten minutes of the allocation, or the job was starting, restoring, suspended or ending
with readings as not materialized (
    from intermediate.int_gpu_metrics where hour_ms > scope_from_ms() - one_hour_ms() and hour_ms < scope_to_ms()
)

select * exclude (hold) from held_bins('readings', scope_from_ms(), scope_to_ms())
