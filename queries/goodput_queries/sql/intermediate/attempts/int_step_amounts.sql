-- Amounts of each category in stretches of steps, by ten minutes: how much of a stretch was productive, communication,
-- waiting, input, saves and restarts, whatever the number of its steps.
-- grain: attempt_key, gpu_uuid, start_ms, category, phase
-- gpu_uuid: null: of each GPU of the gang; else added to that of the gang for this GPU
-- start_ms, end_ms: of the ten minutes, or of the part of them that the stretch has
-- ms: of one GPU; those of one GPU may be negative: its waits take from the steps of the gang
-- first_ms, last_ms: first and last of the category in it; null where it only takes
-- materialised: attempts, since each GPU of the gang has them
-- skip_if_empty: temp.int_attempts
-- change_tracking: start_ms, end_ms
with timeline as (
    select *, unnest(range(start_ms // ten_minutes_ms(), (end_ms - 1) // ten_minutes_ms() + 1)) * ten_minutes_ms() as cell_ms
    from temp.int_run_timeline
    where stretch_ms is not null
),

stretches as (
    select attempt_key, stretch_ms, max(end_ms) as stretch_end_ms
    from timeline
    group by all
),

pieces as (
    select
        attempt_key, stretch_ms, cell_ms, null::varchar as gpu_uuid, category, phase, 1 as sign,
        greatest(start_ms, cell_ms) as start_ms, least(end_ms, cell_ms + ten_minutes_ms()) as end_ms
    from timeline
    union all
    -- a split takes its time from the step
    select
        attempt_key, stretch_ms, cell_ms, gpu_uuid,
        unnest([category, 'step_unsplit']), unnest([phase, null]), unnest([1, -1]), start_ms, end_ms
    from temp.int_step_splits
)

select
    pieces.attempt_key,
    pieces.gpu_uuid,
    greatest(pieces.cell_ms, pieces.stretch_ms) as start_ms,
    least(pieces.cell_ms + ten_minutes_ms(), any_value(stretches.stretch_end_ms)) as end_ms,
    pieces.cell_ms // one_hour_ms() * one_hour_ms() as hour_ms,
    pieces.category,
    pieces.phase,
    sum(pieces.sign * (pieces.end_ms - pieces.start_ms))::bigint as ms,
    min(pieces.start_ms) filter (where pieces.sign > 0) as first_ms,
    max(pieces.end_ms) filter (where pieces.sign > 0) as last_ms
from pieces
inner join stretches using (attempt_key, stretch_ms)
group by pieces.attempt_key, pieces.stretch_ms, pieces.cell_ms, pieces.gpu_uuid, pieces.category, pieces.phase
having sum(pieces.sign * (pieces.end_ms - pieces.start_ms)) <> 0
