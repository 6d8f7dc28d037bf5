-- Idle gaps by ledger category: a gap is an interval without activity on a GPU inside one allocation, or between two,
-- and inside the scope's window; it has a part for each category that it overlaps. The parts of a category never add
-- up to more than the ledger's time of it.
-- grain: gap_id, category
-- access: team
-- gap_start_at, gap_end_at, gap_s: of the whole gap, from the last active reading to the first active one
-- is_main: the part of the category that most of the gap lies in
-- start_at, end_at: first and last moment of the gap in this category
-- gpu_ms, cost: of the part; gap_gpu_ms, gap_cost: of the gap; milliseconds of a whole GPU, null without a price
-- is_beside_work: its job stepped meanwhile, and the gap is no pause (threshold idle_min_ms): the ledger counts it
--  with the steps, since job events cover all GPUs of the job
-- cause: of the part
-- readings_coverage_ratio: share of the gap that readings cover; null for who sees some teams only, where the time of no
--  activity is in part another team's
select
    idle_gap_id(gpu_uuid, gpu_instance, whole_start_ms) as gap_id,
    * exclude (gap, whole_start_ms, phase, phase_label),
    gap_cause(category, is_beside_work, phase, phase_label) as cause,
    gap_confidence(category) as confidence,
    gap_evidence(readings_coverage_ratio, gpu_ms, gap_gpu_ms, phase, label) as evidence
from intermediate.int_idle_gap_amounts
