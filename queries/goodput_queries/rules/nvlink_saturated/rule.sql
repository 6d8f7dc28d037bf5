-- skip_if_empty: intermediate.int_gpu_metrics where nvlink_tx_bytes_per_s.mean > 0
with rates as (
    select
        gpu_uuid,
        start_ms,
        max(greatest(nvlink_tx_bytes_per_s.mean, nvlink_rx_bytes_per_s.mean)) as bytes_per_s
    from intermediate.int_gpu_metrics
    where
        hour_ms > scope_from_ms() - one_hour_ms()
        and start_ms >= scope_from_ms()
        and start_ms <= scope_to_ms() - ten_minutes_ms()
        and greatest(nvlink_tx_bytes_per_s.mean, nvlink_rx_bytes_per_s.mean)
        >= threshold('nvlink_full_ratio') * (select min(gpu_link_bytes_per_s) / 2 from marts.gpu_model_peaks)
    group by gpu_uuid, start_ms
),

-- published rates are of both directions together
saturated as (
    select rates.*, peaks.gpu_link_bytes_per_s / 2 as peak_bytes_per_s
    from rates
    inner join (select gpu_uuid, any_value(gpu_model) as gpu_model from intermediate.int_gpu_units group by gpu_uuid) as models
        using (gpu_uuid)
    inner join marts.gpu_model_peaks as peaks using (gpu_model)
    where rates.bytes_per_s >= threshold('nvlink_full_ratio') * peaks.gpu_link_bytes_per_s / 2
)

select
    holds.cluster,
    holds.node,
    owners.run_key,
    from_ms(min(saturated.start_ms)) as start_at,
    from_ms(max(saturated.start_ms) + ten_minutes_ms()) as end_at,
    (count(*) * ten_minutes_ms())::bigint as gpu_ms,
    'Confirmed' as confidence,
    printf(
        'NVLink of %s at %.0f GB/s, %.1f %% of its %.0f GB/s a direction, in %d ten-minute means',
        counted(count(distinct saturated.gpu_uuid), 'GPU'), avg(saturated.bytes_per_s) / 1e9,
        100 * avg(saturated.bytes_per_s / saturated.peak_bytes_per_s), any_value(saturated.peak_bytes_per_s) / 1e9,
        count(distinct saturated.start_ms)
    ) as evidence
from saturated
inner join intermediate.int_holds as holds
    on saturated.gpu_uuid = holds.gpu_uuid
    and saturated.start_ms >= holds.start_ms
    and saturated.start_ms < coalesce(holds.end_ms, forever_ms())
inner join intermediate.int_job_run_owners as owners using (job_run_key)
where
    of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
    and in_place(holds.cluster, holds.node, saturated.gpu_uuid, null)
group by holds.cluster, holds.node, owners.run_key
