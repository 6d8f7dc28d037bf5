-- Time of each GPU in a node, by inventory sources: one row a GPU and stay.
-- grain: gpu_uuid, node, start_ms
-- start_ms: null: as far back as there is evidence
-- end_ms: null: still there
-- is_dated: the dates come from an inventory file and are not widened by other evidence
-- materialised: full, since every stage that knows GPUs asks it
-- change_tracking: all
with others as (
    select gpu_uuid, stay, unnest(others_ms) as reported_ms from intermediate.int_gpu_stays
),

readings as (
    select gpu_uuid, max(last_ms) as last_ms from state.reading_series group by gpu_uuid
),

-- another GPU that comes where one was read no more was put in its place
ends as (
    select others.gpu_uuid, others.stay, min(others.reported_ms) as replaced_ms
    from others
    inner join readings using (gpu_uuid)
    where others.reported_ms > readings.last_ms
    group by others.gpu_uuid, others.stay
)

select
    stays.* exclude (stay, end_ms, others_ms),
    least(stays.end_ms, ends.replaced_ms) as end_ms
from intermediate.int_gpu_stays as stays
left join ends using (gpu_uuid, stay)
