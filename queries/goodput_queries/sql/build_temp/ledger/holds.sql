-- Holds of each unit in this pass.
-- grain: unit, start_ms
-- hold: number of the job run, from 1
select
    cast(dense_rank() over (order by holds.job_run_key) as integer) as hold,
    units.unit,
    holds.job_run_key,
    holds.method = 'assumed' as is_assumed,
    greatest(holds.start_ms, units.start_ms) as start_ms,
    least(coalesce(holds.end_ms, units.end_ms), units.end_ms) as end_ms
from intermediate.int_holds as holds
inner join temp.units as units using (gpu_uuid, gpu_instance)
where holds.start_ms < units.end_ms and coalesce(holds.end_ms, units.end_ms) > units.start_ms
