-- Pairs of attempts of one job run that are alike step for step, where two sources under two run ids report one each: most
-- likely one attempt, and the clock of a source is off. Nothing is joined or shifted, since a job that starts again and
-- changes how it reports looks the same.
-- grain: attempt_key, other_attempt_key
-- run_id, source_kind: of the stronger source; other_run_id, other_source_kind: of the weaker one
-- source_kind: as event_source_kind names it
-- steps: number of steps that both report
-- off_ms: how much later the weaker source has the same step, median
with lives as (
    select
        attempts.attempt_key,
        lives.job_run_key,
        lives.run_id,
        spans.place,
        spans.first_step,
        spans.last_step
    from intermediate.int_attempt_lives as lives
    inner join intermediate.int_event_spans as spans using (cluster, run_id, attempt)
    inner join intermediate.int_attempts as attempts using (job_run_key, life)
    where lives.begin_ms = spans.first_ms and spans.first_step is not null
),

pairs as (
    select
        stronger.attempt_key,
        weaker.attempt_key as other_attempt_key,
        stronger.job_run_key,
        stronger.run_id,
        weaker.run_id as other_run_id,
        event_source_kind(stronger.place) as source_kind,
        event_source_kind(weaker.place) as other_source_kind
    from lives as stronger
    inner join lives as weaker
        on stronger.job_run_key = weaker.job_run_key
        and stronger.place < weaker.place
        and stronger.run_id <> weaker.run_id
        and stronger.attempt_key <> weaker.attempt_key
    where
        -- an attempt that ended at another step is another one
        least(stronger.last_step, weaker.last_step) - greatest(stronger.first_step, weaker.first_step)
        >= threshold('same_attempt_min_ratio')
        * (greatest(stronger.last_step, weaker.last_step) - least(stronger.first_step, weaker.first_step))
)

select
    pairs.*,
    count(*) as steps,
    median(theirs.end_ms - ours.end_ms)::bigint as off_ms
from pairs
inner join intermediate.int_train_steps as ours on pairs.attempt_key = ours.attempt_key
inner join intermediate.int_train_steps as theirs
    on pairs.other_attempt_key = theirs.attempt_key
    and ours.step = theirs.step
group by all
having
    count(*) >= threshold('same_attempt_min_steps')
    and abs(median(theirs.end_ms - ours.end_ms)) >= threshold('clock_offset_min_ms')
    and quantile_cont(theirs.end_ms - ours.end_ms, 0.75) - quantile_cont(theirs.end_ms - ours.end_ms, 0.25)
    <= threshold('same_step_spread_ms')
