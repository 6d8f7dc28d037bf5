-- Of marts.idle_gap_parts what a list can show: the main parts of the 2,000 gaps of the highest cost, and 500 parts of each
-- category, so that a filter finds some of each.
-- grain: gap_id, category
-- evaluated: first
-- access: team
-- the columns: see marts.idle_gap_parts
with chosen as (
    (
        select gap, category
        from intermediate.int_idle_gap_splits_in_scope
        where is_main
        order by gap_cost desc nulls last, gap_gpu_ms desc, gap
        limit 2000
    )
    union
    select gap, category
    from (
        select category, unnest(max_by(gap, (coalesce(cost, -1), gpu_ms, gap), 500)) as gap
        from intermediate.int_idle_gap_splits_in_scope
        group by category
    )
)

select
    idle_gap_id(gpu_uuid, gpu_instance, whole_start_ms) as gap_id,
    parts.* exclude (gap, whole_start_ms, phase, phase_label),
    gap_cause(category, is_beside_work, phase, phase_label) as cause,
    gap_confidence(category) as confidence,
    gap_evidence(readings_coverage_ratio, gpu_ms, gap_gpu_ms, phase, label) as evidence
from intermediate.int_idle_gap_amounts as parts
where (parts.gap, parts.category) in (from chosen)
