-- Pieces of attempts in this pass, for their whole gangs.
-- grain: attempt_key, start_ms
-- piece: number of the attempt, category and phase, from 1: equal neighbours are one in the ledger
select
    cast(dense_rank() over (
        order by timeline.attempt_key, timeline.category, coalesce(timeline.phase, '')
    ) as integer) as piece,
    holds.hold,
    timeline.attempt_key,
    timeline.category,
    timeline.phase,
    timeline.start_ms,
    coalesce(timeline.end_ms, 9223372036854775807) as end_ms
from intermediate.int_run_timeline as timeline
inner join (select distinct job_run_key, hold from temp.holds) as holds using (job_run_key)
where
    timeline.start_ms < build_to_ms() + threshold('idle_min_ms')
    and coalesce(timeline.end_ms, 9223372036854775807) > build_from_ms() - threshold('idle_min_ms')
