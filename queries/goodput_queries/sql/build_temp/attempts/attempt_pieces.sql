-- Each attempt with job evidence cut into pieces that do not overlap: declared phases (innermost first),
-- then derived start-up and end, then steps; what none of these covers is a gap.
-- grain: attempt_key, start_ms
-- skip_if_empty: temp.int_attempts
-- category: null: a gap between two intervals of the run, or time that telemetry has to settle
-- is_gap: a gap inside the run's work (precedence rule 9), not merely silence
-- end_ms: null: the attempt still runs
with attempts as (select * from temp.int_attempts where has_events),

-- steps after which a phase ends before the next step starts: what is between the two belongs to the phase
before_phases as (
    select distinct steps.attempt_key, steps.start_ms, true as is_before_phase
    from temp.declared_phases as phases
    asof join temp.int_train_steps as steps
        on phases.attempt_key = steps.attempt_key and phases.end_ms >= steps.start_ms
    where phases.end_ms > steps.end_ms
),

-- of a step the end of the one before it, and whether it goes on with that one
followed_steps as (
    select
        attempt_key,
        fate,
        start_ms,
        lag(end_ms) over in_order as before_end_ms,
        coalesce(
            lag(fate) over in_order = fate
            and start_ms - before_end_ms < gap_of_step_max_ms(median_step_ms)
            and lag(is_before_phase) over in_order is null,
            false
        ) as goes_on
    from temp.int_train_steps
    left join before_phases using (attempt_key, start_ms)
    window in_order as (partition by attempt_key order by start_ms)
),

-- steps of one fate with no gap worth the name between them: a day of steps is a handful of rows
steps as (
    select
        attempt_key,
        fate,
        start_ms,
        coalesce(lead(before_end_ms) over (partition by attempt_key order by start_ms), lasts.end_ms) as end_ms
    from followed_steps
    inner join (select attempt_key, max(end_ms) as end_ms from temp.int_train_steps group by attempt_key) as lasts
        using (attempt_key)
    where not goes_on
),

bounds as (
    select attempt_key, start_ms as at_ms from attempts
    union
    select attempt_key, coalesce(end_ms, forever_ms()) from attempts
    union
    select attempt_key, unnest([start_ms, end_ms]) from temp.declared_phases as phases
    union
    select attempt_key, unnest([start_ms, end_ms]) from steps
    union
    select
        attempt_key,
        unnest([first_step_ms, steps_from_ms, work_end_ms, startup_end_ms, teardown_until_ms])
    from temp.attempt_edges as edges
),

cells as (
    select
        bounds.attempt_key,
        bounds.at_ms as start_ms,
        case
            when lead(bounds.attempt_key) over in_order = bounds.attempt_key
                then lead(bounds.at_ms) over in_order
        end as end_ms
    from bounds
    inner join attempts using (attempt_key)
    where
        bounds.at_ms >= attempts.start_ms
        and bounds.at_ms <= coalesce(attempts.end_ms, forever_ms())
    window in_order as (order by bounds.attempt_key, bounds.at_ms)
),

innermost as (
    select
        cells.attempt_key,
        cells.start_ms,
        arg_max(struct_pack(phase := phases.phase, category := phases.category),
            (phases.reported_start_ms, -phases.end_ms)) as declared
    from cells
    inner join temp.declared_phases as phases
        on cells.attempt_key = phases.attempt_key
        and phases.start_ms <= cells.start_ms
        and phases.end_ms >= cells.end_ms
    group by cells.attempt_key, cells.start_ms
),

in_step as (
    select cells.attempt_key, cells.start_ms, steps.fate
    from cells
    asof join steps
        on cells.attempt_key = steps.attempt_key and cells.start_ms >= steps.start_ms
    where cells.end_ms <= steps.end_ms
),

described as (
    select
        cells.*,
        innermost.declared,
        in_step.fate,
        edges.first_step_ms,
        edges.steps_from_ms,
        edges.work_end_ms,
        edges.startup_end_ms,
        edges.teardown_until_ms,
        edges.median_step_ms,
        attempts.outcome,
        attempts.is_stalled
    from cells
    inner join attempts using (attempt_key)
    inner join temp.attempt_edges as edges using (attempt_key)
    left join innermost
        on cells.attempt_key = innermost.attempt_key and cells.start_ms = innermost.start_ms
    left join in_step
        on cells.attempt_key = in_step.attempt_key and cells.start_ms = in_step.start_ms
    where cells.end_ms is not null
),

classified as (
    select
        attempt_key,
        start_ms,
        end_ms,
        median_step_ms,
        case
            when declared is not null then declared.category
            when start_ms < steps_from_ms or start_ms < startup_end_ms then 'startup'
            when start_ms >= work_end_ms and (is_stalled or outcome not in ('running', 'unknown')) then
                case
                    when outcome = 'ok' then 'teardown'
                    when first_step_ms is null then 'teardown'
                    when outcome = 'limit' and start_ms < teardown_until_ms then 'teardown'
                    else 'fault_stall'
                end
            when fate = 'kept' then 'step_unsplit'
            when fate = 'lost' then 'lost_work'
            when fate in ('at_risk', 'durability_unknown') then 'at_risk'
        end as category,
        case
            when declared is not null then declared.phase
            when start_ms >= first_step_ms and start_ms < steps_from_ms then 'compile'
            when fate = 'durability_unknown' then 'durability_unknown'
        end as phase,
        declared is null
            and fate is null
            and first_step_ms is not null
            and start_ms >= first_step_ms
            and start_ms < work_end_ms as is_gap,
        declared is null and fate is not null as is_step
    from described
),

-- max_ms: a shorter gap belongs to the interval before it
followed as (
    select
        *,
        lag(category) over in_order as before_category,
        lag(phase) over in_order as before_phase,
        case
            when lag(attempt_key) over in_order is distinct from attempt_key then 0
            when lag(is_step) over in_order then gap_of_step_max_ms(median_step_ms)
            else threshold('gap_step_share') * median_step_ms
        end as max_ms
    from classified
    window in_order as (order by attempt_key, start_ms)
),

absorbed as (
    select
        attempt_key,
        start_ms,
        end_ms,
        case when is_gap and end_ms - start_ms < max_ms then before_category else category end as category,
        case when is_gap and end_ms - start_ms < max_ms then before_phase else phase end as phase,
        is_gap and end_ms - start_ms >= max_ms as is_gap
    from followed
),

marked as (
    select
        *,
        (attempt_key, category, phase, is_gap) is distinct from lag((attempt_key, category, phase, is_gap)) over (
            order by attempt_key, start_ms
        ) as is_new
    from absorbed
),

numbered as (
    select
        *,
        sum(is_new::integer) over (order by attempt_key, start_ms rows unbounded preceding) as piece
    from marked
)

select
    attempt_key,
    any_value(category) as category,
    any_value(phase) as phase,
    bool_or(is_gap) as is_gap,
    min(start_ms) as start_ms,
    nullif(max(end_ms), forever_ms()) as end_ms
from numbered
group by attempt_key, piece
