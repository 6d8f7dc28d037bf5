-- Steps of the gang: from the earliest start to the latest end over ranks, cut at the end of the step
-- before; and whether a durable checkpoint, a later attempt or a good end kept them.
-- grain: attempt_key, step
-- fate: kept, lost, at_risk (may still be kept or lost), durability_unknown (no source reports durable saves)
-- is_recomputed: the run had this step number before
-- median_step_ms: of the attempt's steps
-- data_ms: longest data wait of a rank; null: no rank reports it
-- tokens, samples, flops: of the ranks that reported the step
-- mfu_ratio: as the job works it out
-- ranks: number of ranks that reported the step
-- materialised: attempts, since the timeline, the splits and the pages read it
-- skip_if_empty: temp.attempt_events
with lone as (
    select attempt_key
    from temp.int_rank_steps
    group by attempt_key
    having min(coalesce(rank, -1)) = max(coalesce(rank, -1))
),

-- where one rank speaks for the gang its steps are those of the gang: only others are grouped
gang as (
    select
        attempt_key,
        step,
        start_ms as first_start_ms,
        end_ms,
        1::bigint as ranks,
        wait_data_s * 1000 as data_ms,
        columns(['tokens', 'flops', 'samples', 'gpu_tokens', 'gpu_flops', 'mfu_ratio'])
    from temp.int_rank_steps
    semi join lone using (attempt_key)
    union all
    select
        attempt_key,
        step,
        min(start_ms) as first_start_ms,
        max(end_ms) as end_ms,
        count(*) as ranks,
        max(wait_data_s) * 1000 as data_ms,
        case when bool_or(is_for_gang) then max(columns(['tokens', 'flops', 'samples']))
            else sum(columns(['tokens', 'flops', 'samples'])) end,
        avg(columns(['gpu_tokens', 'gpu_flops', 'mfu_ratio']))
    from temp.int_rank_steps as rank_steps
    anti join lone using (attempt_key)
    group by attempt_key, step
),

cut as (
    select
        * exclude (first_start_ms),
        greatest(
            first_start_ms,
            coalesce(
                lag(end_ms) over (partition by attempt_key order by end_ms, step),
                first_start_ms
            )
        ) as start_ms
    from gang
),

inside as (
    -- clocks of a job and its scheduler differ by up to a second: what lies outside the attempt is cut
    select
        cut.attempt_key,
        cut.step,
        greatest(cut.start_ms, attempts.start_ms) as start_ms,
        least(cut.end_ms, coalesce(attempts.end_ms, cut.end_ms)) as end_ms,
        cut.ranks,
        cut.data_ms,
        coalesce(cut.tokens, cut.gpu_tokens * attempts.gpus) as tokens,
        coalesce(cut.flops, cut.gpu_flops * attempts.gpus) as flops,
        cut.samples,
        cut.mfu_ratio
    from cut
    inner join temp.int_attempts as attempts using (attempt_key)
),

-- grouped: a window sorts the steps of each attempt
medians as (
    select attempt_key, median(end_ms - start_ms) as median_step_ms
    from inside
    where end_ms > start_ms
    group by attempt_key
),

saves as (
    select
        attempt_key,
        max(step) filter (where event = 'ckpt.durable') as durable_step,
        count_if(event = 'ckpt.durable') as durable_saves,
        count_if(phase = 'ckpt_save') as started_saves,
        max(step) filter (where phase = 'ckpt_save' and not reports_durability and is_authoritative) as begun_step,
        -- of the authoritative source for steps or phases: another one may be unable to report saves
        arg_min(not reports_durability, (event_source_place(source), reports_durability)) filter (
            where phase is not null or event in ('step', 'step.start')
        ) as is_silent
    from temp.attempt_events
    group by attempt_key
),

per_attempt as (
    select
        attempts.attempt_key,
        attempts.run_key,
        attempts.attempt,
        attempts.outcome,
        saves.durable_step,
        saves.begun_step,
        sum(coalesce(saves.durable_saves, 0)) over run as run_durable_saves,
        sum(coalesce(saves.started_saves, 0)) over run as run_started_saves,
        coalesce(bool_or(saves.is_silent) over run, false) as is_silent,
        firsts.first_step,
        firsts.last_step
    from temp.int_attempts as attempts
    left join saves using (attempt_key)
    left join (
        select attempt_key, min(step) as first_step, max(step) as last_step from inside group by attempt_key
    ) as firsts using (attempt_key)
    window run as (partition by attempts.run_key)
),

with_later as (
    select
        *,
        -- what an attempt without steps says is saved, attempts before it computed
        max(coalesce(first_step, durable_step + 1)) over later as later_first_step_max,
        list({first: first_step, last: last_step}) filter (where first_step is not null) over later as later_steps
    from per_attempt
    window later as (
        partition by run_key order by attempt rows between 1 following and unbounded following
    )
),

-- the first attempt of a step, of runs that stepped in several: joined by step alone, as an `exists` was, the steps of all
-- runs meet that have one number
firsts as (
    select per_attempt.run_key, inside.step, min(per_attempt.attempt) as attempt
    from inside
    inner join per_attempt using (attempt_key)
    semi join (
        select run_key from per_attempt where first_step is not null group by run_key having count(*) > 1
    ) as runs using (run_key)
    group by per_attempt.run_key, inside.step
)

select
    inside.attempt_key,
    with_later.run_key,
    inside.* exclude (attempt_key),
    case
        -- a later attempt did the step again, so whatever was saved, this execution was for nothing
        when list_bool_or(list_transform(with_later.later_steps, lambda of: inside.step between of.first and of.last))
            then 'lost'
        when inside.step <= with_later.durable_step then 'kept'
        when inside.step < with_later.later_first_step_max then 'kept'
        when with_later.outcome = 'ok' then 'kept'
        when with_later.outcome in ('running', 'unknown') then 'at_risk'
        -- saved, but the source cannot say whether the save was finished
        when inside.step <= with_later.begun_step then 'durability_unknown'
        when with_later.run_durable_saves = 0
            and (with_later.run_started_saves > 0 or with_later.is_silent) then 'durability_unknown'
        else 'lost'
    end as fate,
    coalesce(firsts.attempt < with_later.attempt, false) as is_recomputed,
    medians.median_step_ms
from inside
inner join with_later using (attempt_key)
inner join medians using (attempt_key)
left join firsts on with_later.run_key = firsts.run_key and inside.step = firsts.step
where inside.end_ms > inside.start_ms
