-- The ledger of the scope: whole hours from the hourly roll-up, hours that the window cuts from the
-- segments, each row with its owner and price. Every other number about GPU time is a sum over this.
-- grain: none (parts of hours)
-- gpu_ms: milliseconds of a whole GPU
-- usd: null where the rate card has no price
with window_ as (
    select
        coalesce(getvariable('scope_from_ms')::bigint, 0) as from_ms,
        coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807) as to_ms
),

whole_hours as (
    select
        cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms, gpu_ms
    from marts.ledger_hourly
    where
        hour_ms >= coalesce(getvariable('scope_from_ms')::bigint, 0)
        and hour_ms <= coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807) - 3600000
),

cut_hours as (
    select
        cluster, node, gpu_uuid, gpu_instance, gpu_model, mig_profile, job_run_key, attempt_key,
        category, phase, hour_ms,
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

rows_ as (
    select * from whole_hours
    union all
    select * from cut_hours
)

select
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
    rows_.gpu_ms,
    prices.usd_per_gpu_h,
    rows_.gpu_ms / 3600000.0 * prices.usd_per_gpu_h::double as usd
from rows_
left join intermediate.int_job_run_owners as owners using (job_run_key)
left join intermediate.int_prices as prices
    on rows_.cluster = prices.cluster
    and coalesce(rows_.gpu_model, '') = prices.gpu_model
    and coalesce(rows_.mig_profile, '') = prices.mig_profile
    and coalesce(owners.partition, '') = prices.partition
    and coalesce(owners.qos, '') = prices.qos
    and rows_.hour_ms >= prices.from_ms
    and rows_.hour_ms < prices.to_ms
where
    in_scope(
        rows_.cluster, rows_.node, rows_.gpu_uuid, rows_.gpu_model,
        owners.team, owners.user_name, owners.run_key, owners.partition
    )
