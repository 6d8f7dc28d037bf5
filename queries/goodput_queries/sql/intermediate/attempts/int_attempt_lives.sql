-- Maps lives in job events to attempts. A job run may have lives under several run ids at one time, since sources name
-- it differently (RUN_ID in job events, Slurm's number in a log): then those of the strongest source with steps start
-- the attempts. A life of a weaker source is part of them, unless it has steps at a time when no stronger source does,
-- and they do not continue a stronger one's steps.
-- grain: job_run_key, life, run_id, attempt
-- life: the number of the attempt in its job run, from 1
-- run_id, attempt: a life as its events name it
-- begin_ms: first event of the attempt's strongest source
-- from_ms, until_ms: those of the life's events belong to the attempt that end from the one until before the other
-- has_failed: one of these reports a failure that is no preemption
-- materialised: runs, since of other runs nothing changed
-- skip_if_empty: temp.dirty_job_runs
with lives as (
    select
        job_runs.job_run_key,
        spans.*,
        -- events outside the hold start no attempt
        spans.first_step is not null
        and spans.begun_until_ms > job_runs.start_ms
        and spans.first_ms < coalesce(job_runs.end_ms, forever_ms()) as can_begin
    from intermediate.int_event_lives as lives
    inner join intermediate.int_event_spans as spans using (cluster, run_id, attempt)
    inner join intermediate.int_job_runs as job_runs using (job_run_key)
    semi join temp.dirty_job_runs using (job_run_key)
),

strongest as (
    select job_run_key, coalesce(min(place) filter (where can_begin), min(place)) as place
    from lives
    group by job_run_key
),

-- rank 0: the strongest; a source that begins nothing comes after all that do
ranked as (
    select
        lives.*,
        case when lives.place < strongest.place then 9 else lives.place - strongest.place end as rank
    from lives
    inner join strongest using (job_run_key)
),

weaker as (select * from ranked where rank > 0),

joined as (
    select weaker.cluster, weaker.run_id, weaker.attempt, stronger.run_id as with_run_id, stronger.attempt as with_attempt
    from weaker
    inner join ranked as stronger
        on weaker.job_run_key = stronger.job_run_key
        and weaker.rank > stronger.rank
        and stronger.can_begin
    where
        -- a log prints a line shortly after the event
        greatest(weaker.first_ms, stronger.first_ms) <= least(weaker.begun_until_ms, stronger.begun_until_ms) + 1000
        or case
            when weaker.first_ms > stronger.first_ms
                then not weaker.has_start and weaker.first_step > stronger.last_step
            else not stronger.has_start and stronger.first_step > weaker.last_step
        end
),

parts as (
    select * from weaker where not can_begin
    union
    select weaker.* from weaker semi join joined using (cluster, run_id, attempt)
),

-- one order of all is cheaper than one of each of many job runs
ordered as (
    select *, row_number() over (order by job_run_key, first_ms, attempt, run_id) as position
    from ranked
    anti join parts using (cluster, run_id, attempt)
),

firsts as (
    select job_run_key, min(position) as first_position from ordered group by job_run_key
),

attempts as (
    select ordered.* exclude (position), position - first_position + 1 as life
    from ordered
    inner join firsts using (job_run_key)
),

-- a part is divided among the attempts that it is joined with; one that is joined with none, among all
divided as (
    select
        parts.cluster,
        parts.job_run_key,
        parts.run_id,
        parts.attempt,
        parts.failed_ms,
        attempts.life,
        attempts.first_ms as begin_ms,
        joined.run_id is not null as is_joined
    from parts
    inner join attempts on parts.job_run_key = attempts.job_run_key and parts.rank > attempts.rank
    left join joined
        on parts.cluster = joined.cluster
        and parts.run_id = joined.run_id
        and parts.attempt = joined.attempt
        and attempts.run_id = joined.with_run_id
        and attempts.attempt = joined.with_attempt
    qualify is_joined or not bool_or(is_joined) over (partition by parts.cluster, parts.run_id, parts.attempt)
),

-- each event is of the attempt that had begun last, those before the first one of the first
bounded as (
    select
        * exclude (is_joined),
        case when lag(life) over in_order is null then 0 else begin_ms end as from_ms,
        coalesce(lead(begin_ms) over in_order, forever_ms()) as until_ms
    from divided
    window in_order as (partition by cluster, run_id, attempt order by life)
)

select
    cluster,
    job_run_key,
    life,
    run_id,
    attempt,
    begin_ms,
    from_ms,
    until_ms,
    coalesce(failed_ms >= from_ms and failed_ms < until_ms, false) as has_failed
from bounded
union all by name
select
    cluster,
    job_run_key,
    life,
    run_id,
    attempt,
    first_ms as begin_ms,
    0 as from_ms,
    forever_ms() as until_ms,
    failed_ms is not null as has_failed
from attempts
