-- Losses inside steps in this pass, by GPU of the gang.
-- grain: unit, start_ms
-- split: number of the category and phase, from 1
with splits as (
    select
        cast(dense_rank() over (order by splits.category, splits.phase) as integer) as split,
        holds.hold,
        splits.gpu_uuid,
        splits.category,
        splits.phase,
        splits.start_ms,
        splits.end_ms
    from intermediate.int_step_splits as splits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join (select distinct job_run_key, hold from temp.holds) as holds using (job_run_key)
    where
        splits.start_ms < build_to_ms() + threshold('idle_min_ms')
        and splits.end_ms > build_from_ms() - threshold('idle_min_ms')
)

select
    splits.split,
    splits.category,
    splits.phase,
    holds.unit,
    greatest(splits.start_ms, holds.start_ms) as start_ms,
    least(splits.end_ms, holds.end_ms) as end_ms
from splits
inner join temp.holds as holds using (hold)
inner join temp.units as units using (unit)
where
    splits.start_ms < holds.end_ms
    and splits.end_ms > holds.start_ms
    and coalesce(splits.gpu_uuid, units.gpu_uuid) = units.gpu_uuid
