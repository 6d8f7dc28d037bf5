-- Owners of the GPUs of nodes with a power meter, by hour, in the time that the meter covers. The energy that the meter
-- counts beyond the GPUs is shared in proportion to that time.
-- grain: cluster, node, job_run_key, availability, gpu_model, mig_profile, hour_ms
-- availability: held, free, not_available
-- materialised: hourly, since few nodes have a meter, and what a job did with its GPUs changes nothing here
-- skip_if_empty: intermediate.int_node_energy
-- change_tracking: hour_ms
with times as (
    select ledger.cluster, ledger.node, ledger.job_run_key, ledger.category, ledger.gpu_model, ledger.mig_profile,
        ledger.hour_ms, ledger.gpu_ms
    from marts.ledger_hourly_by_node as ledger
    semi join intermediate.int_node_energy as meters
        on ledger.cluster = meters.cluster
        and ledger.node = meters.node
        and ledger.hour_ms = meters.hour_ms
        and meters.end_ms - meters.start_ms = one_hour_ms()
    where ledger.hour_ms >= build_from_ms() and ledger.hour_ms < build_to_ms()
    union all
    -- a stretch of steps is allocated, whatever its categories
    select segments.cluster, segments.node, segments.job_run_key,
        case when segments.category = 'stepping' then 'step_unsplit' else segments.category end, segments.gpu_model,
        segments.mig_profile, segments.hour_ms,
        share_ms(
            greatest(segments.start_ms, meters.start_ms), least(segments.end_ms, meters.end_ms),
            segments.share_lo, segments.share_hi, segments.share_of
        )
    from intermediate.int_ledger_segments as segments
    inner join intermediate.int_node_energy as meters
        on segments.cluster = meters.cluster
        and segments.node = meters.node
        and segments.hour_ms = meters.hour_ms
        and segments.start_ms < meters.end_ms
        and segments.end_ms > meters.start_ms
        and meters.end_ms - meters.start_ms < one_hour_ms()
    where segments.hour_ms >= build_from_ms() and segments.hour_ms < build_to_ms()
)

select
    times.cluster,
    times.node,
    times.job_run_key,
    categories.group as availability,
    times.gpu_model,
    times.mig_profile,
    times.hour_ms,
    sum(times.gpu_ms)::bigint as gpu_ms
from times
inner join reference.gpu_second_categories as categories using (category)
group by all
