-- Errors of the NVLink and PCIe links of the scope's GPUs in the window, by the GPUs' counters: those that rose.
-- grain: cluster, node, gpu_uuid, metric
-- metric, meaning: see other_gpu_metrics; errors: increase between the first and the last sample of the window
with counters as (
    select
        gpu_uuid,
        gpu_instance,
        source,
        metric,
        rolled_up_counter(value, ts).gain as errors,
        max(ts) as last_at
    from staging.stg_gpu_samples_other
    where
        metric in (
            'nvlink_crc_data_error_total', 'nvlink_crc_error_total', 'nvlink_crc_flit_error_total',
            'nvlink_recovery_total', 'nvlink_replay_total', 'pcie_replay_total'
        )
        and ts >= from_ms(coalesce(getvariable('scope_from_ms')::bigint, 0))
        and ts < from_ms(coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775))
    group by gpu_uuid, gpu_instance, source, metric
),

of_gpus as (
    select gpu_uuid, metric, max(errors)::bigint as errors, max(last_at) as last_at
    from counters
    where errors > 0
    group by gpu_uuid, metric
),

-- the stay that ended last
places as (
    select cluster, node, gpu_uuid, gpu_index, gpu_model
    from marts.gpus
    qualify row_number() over (partition by gpu_uuid order by start_at desc) = 1
)

select
    places.cluster,
    places.node,
    of_gpus.gpu_uuid,
    places.gpu_index,
    of_gpus.metric,
    catalogue.meaning,
    of_gpus.errors,
    of_gpus.last_at
from of_gpus
inner join places using (gpu_uuid)
left join reference.other_gpu_metrics as catalogue using (metric)
