-- Idle gaps by ledger category without the texts of marts.idle_gap_parts, which take as long as all the rest: for who
-- sums up many gaps and shows few.
-- grain: gap, category
-- gap: number of the gap in intermediate.int_idle_gap_splits; idle_gap_id() makes gap_id
-- whole_start_ms: as there
-- phase, phase_label: detail that the part has most of; '': none
-- the other columns: see marts.idle_gap_parts
select
    splits.* exclude (place, part_start_ms, part_end_ms, owner, start_ms, end_ms),
    places.cluster,
    places.node,
    places.gpu_uuid,
    places.gpu_instance,
    places.gpu_index,
    from_ms(splits.start_ms) as gap_start_at,
    from_ms(splits.end_ms) as gap_end_at,
    (splits.end_ms - splits.start_ms) / 1000.0 as gap_s,
    from_ms(splits.part_start_ms) as start_at,
    from_ms(splits.part_end_ms) as end_at,
    owners.job_run_key,
    owners.run_key,
    owners.run_id,
    owners.team,
    owners.user_name,
    categories.label,
    categories.colour,
    phases.label as phase_label
from intermediate.int_idle_gap_splits_in_scope as splits
inner join intermediate.int_numbered_units as places using (place)
left join intermediate.int_numbered_owners as owners using (owner)
inner join reference.gpu_second_categories as categories using (category)
left join reference.phases as phases using (phase)
