-- Pieces of attempts in this pass, for their whole gangs; a stretch of steps and of short pieces is one.
-- grain: attempt_key, start_ms
-- piece: number of the attempt, category and phase, from 1: equal neighbours are one in the ledger
with timeline as (
    select attempt_key, job_run_key, category, phase, start_ms, end_ms
    from intermediate.int_run_timeline
    where stretch_ms is null
    union all
    select attempt_key, any_value(job_run_key), 'stepping', null, stretch_ms, max(end_ms)
    from intermediate.int_run_timeline
    where stretch_ms is not null
    group by attempt_key, stretch_ms
)

select
    cast(dense_rank() over (
        order by timeline.attempt_key, timeline.category, coalesce(timeline.phase, '')
    ) as integer) as piece,
    holds.hold,
    timeline.* exclude (job_run_key, end_ms),
    coalesce(timeline.end_ms, forever_ms()) as end_ms
from timeline
inner join (select distinct job_run_key, hold from temp.holds) as holds using (job_run_key)
where
    timeline.start_ms < build_to_ms() + threshold('idle_min_ms')
    and coalesce(timeline.end_ms, forever_ms()) > build_from_ms() - threshold('idle_min_ms')
