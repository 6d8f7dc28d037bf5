-- Idle gaps: every interval without activity on a GPU, with owner, cause, confidence and cost. An interval that crosses
-- the boundary of an allocation or of the window is one gap on either side.
-- grain: gpu_uuid, gpu_instance, start_at
-- access: team
-- gap_s: from the last active reading to the first active one, within the allocation or the free time
-- category, cause, confidence, evidence: of the category that most of the gap lies in; marts.idle_gap_parts has all
-- is_beside_work: its job stepped meanwhile, and the gap is no pause (threshold idle_min_ms): the ledger counts it
--  with the steps, since job events cover all GPUs of the job
-- gpu_ms: milliseconds of a whole GPU inside the gap; category_gpu_ms: of them in its category
select
    * exclude (gap_start_at, gap_end_at, gap_gpu_ms, gap_cost, is_main, readings_coverage_ratio)
    replace (gap_start_at as start_at, gap_end_at as end_at, gap_gpu_ms as gpu_ms, gap_cost as cost),
    gpu_ms as category_gpu_ms
from marts.idle_gap_parts
where is_main
