-- The series of readings, numbered by what they are readings of.
-- grain: series
-- unit: number of the GPU or instance
-- has_rivals: another source reads it too
-- is_tangled: as in reading_runs
select
    *,
    hash(source) as reader,
    dense_rank() over (order by gpu_uuid, gpu_instance) as unit,
    count(*) over (partition by gpu_uuid, gpu_instance) > 1 as has_rivals,
    series in (select series from temp.reading_runs where is_tangled) as is_tangled
from state.reading_series
