-- GPUs in the inventory in the scope's window, one row for each GPU and node it was in.
-- grain: gpu_uuid, node, start_at
-- start_at, end_at: its time in the node; null: as far back as there is evidence; still there
-- rack, rack_row, feed: where its node stands now; null: the inventory does not have it
-- power_limit_w, slowdown_temperature_c, sm_clock_max_hz, memory_bytes: null where no source reports them
-- last_reading_at: of all sources
-- instances: number of MIG instances in the window; 0 for a GPU that is not partitioned
with limits as (
    select
        gpu_uuid,
        max(columns(['power_limit_w', 'slowdown_temperature_c', 'sm_clock_max_hz', 'memory_bytes']))
    from staging.stg_gpus
    group by gpu_uuid
),

readings as (
    select gpu_uuid, max(last_ms) as last_ms from state.reading_series group by gpu_uuid
),

instances as (
    select gpu_uuid, count(distinct gpu_instance) as instances
    from intermediate.int_gpu_units
    where gpu_instance not in ('', 'rest') and in_window(start_ms, end_ms)
    group by gpu_uuid
)

select
    gpus.* exclude (is_slot, slurm_index, is_dated, start_ms, end_ms),
    racks.rack,
    racks.rack_row,
    racks.feed,
    from_ms(gpus.start_ms) as start_at,
    from_ms(gpus.end_ms) as end_at,
    limits.* exclude (gpu_uuid),
    from_ms(readings.last_ms) as last_reading_at,
    coalesce(instances.instances, 0) as instances
from intermediate.int_gpu_inventory as gpus
left join staging.stg_node_racks as racks using (cluster, node)
left join limits using (gpu_uuid)
left join readings using (gpu_uuid)
left join instances using (gpu_uuid)
where
    in_window(coalesce(gpus.start_ms, 0), gpus.end_ms)
    and in_place(gpus.cluster, gpus.node, gpus.gpu_uuid, gpus.gpu_model)
