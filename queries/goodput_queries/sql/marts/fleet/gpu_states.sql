-- State of each GPU at the end of the scope's window, or of the evidence where that ends before: where it stands, its
-- category, who has it, its last readings and its events of the window. Owners do not restrict it.
-- grain: gpu_uuid
-- evaluated: first
-- rack, rack_row, feed: null: the inventory does not have it
-- category: of the largest part of a partitioned GPU; label, colour: of the category; null: the ledger does not reach that time
-- run_key, run_id, job_name, team: of the first of its runs; null where it is not allocated; runs: how many it has
-- sm_active_ratio ... gpu_temperature_c: of the last ten minutes with a reading, not older than 20 minutes; else null
-- throttled_ratio: of them the share of samples with the commonest slowdown reason (thermal, hardware, power brake)
-- memory_used_bytes: of all instances of the GPU
-- errors: incidents of hardware or driver in the window; null: none, and no recent reading shows the GPU
-- events: Xid and other events of severity above info in the window; last_event_at: the latest of them
with shares as materialized (
    select
        *,
        sum(share_ratio) over (partition by gpu_uuid, category) as category_ratio
    from marts.unit_states
),

states as (
    select
        gpu_uuid,
        any_value(columns(['cluster', 'node', 'gpu_index', 'gpu_model', 'at_ms'])),
        arg_max(category, (category_ratio, category)) as category
    from shares
    group by gpu_uuid
),

runs as (
    select
        states.gpu_uuid,
        arg_min(struct_pack(
            run_key := owners.run_key, run_id := owners.run_id, job_name := owners.job_name, team := owners.team
        ), states.job_run_key) as run,
        count(distinct owners.run_key) as runs
    from shares as states
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    group by states.gpu_uuid
),

-- by hours, so that the roll-up is read for two of them
of_hours as (
    select
        gpu_uuid,
        at_ms,
        unnest(list_distinct([(at_ms - 1) // one_hour_ms(), (at_ms - 1200000) // one_hour_ms()])) * one_hour_ms() as hour_ms
    from states
),

last_ones as (
    select metrics.*
    from intermediate.int_gpu_metrics as metrics
    inner join of_hours using (gpu_uuid, hour_ms)
    where metrics.start_ms >= of_hours.at_ms - 1200000 and metrics.start_ms < of_hours.at_ms
    qualify row_number() over (
        partition by metrics.gpu_uuid, metrics.gpu_instance
        order by metrics.start_ms desc, metrics.samples desc, metrics.source
    ) = 1
),

-- power and temperature are those of the device, which its instances repeat
readings as (
    select
        gpu_uuid,
        avg(sm_active_ratio.mean) as sm_active_ratio,
        avg(engine_active_ratio.mean) as engine_active_ratio,
        avg(gpu_busy_ratio.mean) as gpu_busy_ratio,
        avg(tensor_active_ratio.mean) as tensor_active_ratio,
        avg(dram_active_ratio.mean) as dram_active_ratio,
        max(nvlink_rx_bytes_per_s.mean) as nvlink_rx_bytes_per_s,
        max(pcie_rx_bytes_per_s.mean) as pcie_rx_bytes_per_s,
        max(power_w.last) as power_w,
        max(gpu_temperature_c.last) as gpu_temperature_c,
        max(slowed_ratio(clocks_event_reasons)) as throttled_ratio,
        sum(memory_used_bytes.last) as memory_used_bytes
    from last_ones
    group by gpu_uuid
),

events as (
    select gpu_uuid, count(*) as events, max(event_at) as last_event_at
    from marts.gpu_events
    where coalesce(severity, 'warning') <> 'info'
    group by gpu_uuid
),

incidents as (
    select gpu_uuid, count(*) as errors
    from marts.gpu_incidents
    where class = 'hardware' and gpu_uuid is not null
    group by gpu_uuid
)

select
    states.* exclude (at_ms),
    racks.rack,
    racks.rack_row,
    racks.feed,
    from_ms(states.at_ms) as at,
    categories.label,
    categories.colour,
    runs.run.run_key as run_key,
    runs.run.run_id as run_id,
    runs.run.job_name as job_name,
    runs.run.team as team,
    coalesce(runs.runs, 0) as runs,
    readings.* exclude (gpu_uuid),
    coalesce(incidents.errors, case when readings.gpu_uuid is not null then 0 end) as errors,
    coalesce(events.events, 0) as events,
    events.last_event_at
from states
left join staging.stg_node_racks as racks using (cluster, node)
left join reference.gpu_second_categories as categories using (category)
left join runs using (gpu_uuid)
left join readings using (gpu_uuid)
left join incidents using (gpu_uuid)
left join events using (gpu_uuid)
