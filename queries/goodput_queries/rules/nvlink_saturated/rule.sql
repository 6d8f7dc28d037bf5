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
    inner join intermediate.int_gpu_names as models using (gpu_uuid)
    inner join marts.gpu_model_peaks as peaks using (gpu_model)
    where rates.bytes_per_s >= threshold('nvlink_full_ratio') * peaks.gpu_link_bytes_per_s / 2
),

held as (
    select
        holds.cluster,
        holds.node,
        owners.run_key,
        saturated.*,
        count(distinct saturated.gpu_uuid) over of_node = sizes.gpus as is_whole_node
    from saturated
    inner join intermediate.int_holds as holds
        on saturated.gpu_uuid = holds.gpu_uuid
        and saturated.start_ms >= holds.start_ms
        and saturated.start_ms < coalesce(holds.end_ms, forever_ms())
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    inner join (
        select cluster, node, count(distinct gpu_uuid) as gpus from intermediate.int_gpu_units group by cluster, node
    ) as sizes
        on holds.cluster = sizes.cluster and holds.node = sizes.node
    where
        of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
        and in_place(holds.cluster, holds.node, saturated.gpu_uuid, null)
    window of_node as (partition by holds.cluster, holds.node, saturated.start_ms)
),

-- all-to-all by its name, or as sends to more peers than the two neighbours of a pipeline stage
exchanges as (
    select distinct cluster, node
    from (
        select cluster, node, pid, bool_or(operation = 'AlltoAll') as has_name, count(distinct peer) as peers
        from staging.stg_collectives
        where
            (operation = 'AlltoAll' or is_p2p)
            and node in (select node from held where is_whole_node)
            and dumped_at >= from_ms(scope_from_ms())
            and dumped_at < scope_to_at()
        group by cluster, node, pid
    )
    where has_name or peers > 2
    union
    select attempts.cluster, ranks.node
    from staging.stg_profiled_collectives as kernels
    inner join intermediate.int_rank_gpus as ranks using (rank, pid)
    inner join intermediate.int_attempts as attempts
        on ranks.attempt_key = attempts.attempt_key
        and coalesce(kernels.cluster, attempts.cluster) = attempts.cluster
        and kernels.start_ms >= attempts.start_ms
        and kernels.start_ms < coalesce(attempts.end_ms, forever_ms())
    where
        regexp_matches(kernels.operation, 'all_?to_?all', 'i')
        and ranks.node in (select node from held where is_whole_node)
        and kernels.start_at >= from_ms(scope_from_ms())
        and kernels.start_at < scope_to_at()
)

select
    held.cluster,
    held.node,
    held.run_key,
    from_ms(min(held.start_ms)) as start_at,
    from_ms(max(held.start_ms) + ten_minutes_ms()) as end_at,
    (count(*) * ten_minutes_ms())::bigint as gpu_ms,
    'Confirmed' as confidence,
    printf(
        'NVLink of %s at %.0f GB/s, %.1f %% of its %.0f GB/s a direction, in %d ten-minute means',
        counted(count(distinct held.gpu_uuid), 'GPU'), avg(held.bytes_per_s) / 1e9,
        100 * avg(held.bytes_per_s / held.peak_bytes_per_s), any_value(held.peak_bytes_per_s) / 1e9,
        count(distinct held.start_ms)
    ) || case
        when bool_or(held.is_whole_node) and held.is_exchange
            then '; all GPUs of the node at once in all-to-all: its NVSwitches are full'
        when bool_or(held.is_whole_node) then '; all GPUs of the node at once'
        else ''
    end as evidence,
    case
        when bool_or(held.is_whole_node) and held.is_exchange
            then 'Stagger the all-to-all of layers and jobs, or aggregate it into fewer and larger messages'
    end as what_to_do
from (select *, (cluster, node) in (select (cluster, node) from exchanges) as is_exchange from held) as held
group by held.cluster, held.node, held.run_key, held.is_exchange
