-- Errors of the NVLink and PCIe links of the scope's GPUs in the hours that the window touches, by the GPUs' counters: those
-- that rose.
-- grain: cluster, node, gpu_uuid, metric
-- evaluated: first
-- metric, meaning: see other_gpu_metrics; errors: increase of the counter, from hour to hour too; of two sources the greater
-- last_at: end of the last hour in which it rose
with hours as (
    select
        * exclude (first_value, last_value, highest, gain),
        gain + coalesce(
            counter_increase(
                first_value,
                lag(last_value) over (partition by source, gpu_uuid, gpu_instance, metric order by hour_ms)
            ),
            0
        ) as errors
    from intermediate.int_error_counters
    where
        metric in (
            'nvlink_crc_data_error_total', 'nvlink_crc_error_total', 'nvlink_crc_flit_error_total',
            'nvlink_recovery_total', 'nvlink_replay_total', 'pcie_replay_total'
        )
        and hour_ms > scope_from_ms() - one_hour_ms()
        and hour_ms < scope_to_ms()
        and in_gpu(gpu_uuid)
),

counters as (
    select
        * exclude (hour_ms, errors),
        sum(errors) as errors,
        max(hour_ms) filter (where errors > 0) + one_hour_ms() as last_ms
    from hours
    group by source, gpu_uuid, gpu_instance, metric
),

of_gpus as (
    select gpu_uuid, metric, max(errors)::bigint as errors, max(last_ms) as last_ms
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
    from_ms(of_gpus.last_ms) as last_at
from of_gpus
inner join places using (gpu_uuid)
left join reference.other_gpu_metrics as catalogue using (metric)
