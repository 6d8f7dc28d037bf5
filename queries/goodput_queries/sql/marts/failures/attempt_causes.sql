-- Ranked causes of the attempts that ended badly in the scope's window. The first is the failure reason of the attempt
-- (marts.attempts), which decides whose waste it is; the others explain it further, or would if it were wrong.
-- grain: attempt_key, rank
-- access: team
-- evaluated: first
-- rank: 1 is the likeliest
-- cause: failure reason: an Xid, the scheduler's state, the job's kind of failure, a hang, a counter that rose
-- class: hardware, node, network, host memory, storage, numerics, user code, scheduler, unknown
-- confidence: Confirmed (the scheduler or a hardware Xid on a GPU of the attempt), Likely, Not confirmed
-- evidence: with counts and places; evidence_against: what speaks against it, null where nothing is known
-- what_to_do: recommended action; of an Xid the vendor's
-- node, gpu_uuid: where, null for several or none
-- cause_at: when it was first seen
-- lost_gpu_ms: GPU milliseconds that the attempt lost in the window: lost work, fault stall, failed without progress
-- lost_cost: null where the rate card has no price
with attempts as (select * from intermediate.int_failed_attempts_in_scope),

decisive as (
    select *
    from intermediate.int_attempt_cause_candidates
    semi join attempts using (attempt_key)
    -- the state alone is no cause beside another
    qualify place < 90 or count(*) over (partition by attempt_key) = 1
),

-- attempts that went on for long after an Xid on one of their GPUs
survivors as (
    select code, count(distinct attempt_key) as attempts
    from (
        select unnest(incidents.codes) as code, lives.attempt_key
        from marts.gpu_incidents as incidents
        inner join intermediate.int_holds as holds
            on incidents.gpu_uuid = holds.gpu_uuid
            and epoch_ms(incidents.start_at) >= holds.start_ms
            and epoch_ms(incidents.start_at) < coalesce(holds.end_ms, forever_ms())
        inner join intermediate.int_attempts as lives
            on holds.job_run_key = lives.job_run_key
            and epoch_ms(incidents.start_at) >= lives.start_ms
            and epoch_ms(incidents.start_at) + threshold('went_on_ms') < coalesce(lives.end_ms, forever_ms())
        where incidents.class <> 'informational' and of_teams(lives.team)
    )
    group by code
),

first_hardware as (
    select attempt_key, min(at_ms) as at_ms, arg_min(cause, at_ms) as cause
    from decisive
    where blame_cause = 'Xid'
    group by attempt_key
),

judged as (
    select
        decisive.* exclude (blame_cause, is_platform, code),
        nullif(
            concat_ws(
                '; ',
                case
                    when survivors.attempts > 0
                        then 'the same Xid occurred in ' || counted(survivors.attempts, 'attempt') || ' that went on'
                end,
                case
                    when decisive.code is not null and decisive.at_ms > attempts.said_ms + 1000
                        then 'it came ' || (decisive.at_ms - attempts.said_ms) // 1000 || ' s after the job''s own failure ('
                            || attempts.said_kind || ')'
                end,
                case
                    when counters.other_hours > 0
                        then 'they rose in ' || counted(counters.other_hours, 'other hour') || ' of the time range as well'
                end,
                case
                    when decisive.class <> 'hardware' and decisive.cause = attempts.said_kind and first_hardware.at_ms <= attempts.said_ms
                        then first_hardware.cause || ' came ' || (attempts.said_ms - first_hardware.at_ms) // 1000 || ' s before it'
                end
            ),
            ''
        ) as evidence_against
    from decisive
    inner join attempts using (attempt_key)
    left join survivors using (code)
    left join first_hardware using (attempt_key)
    left join intermediate.int_failure_counters as counters
        on decisive.cause = 'ECC errors'
        and counters.kind = 'ecc_uncorrected'
        and decisive.attempt_key = counters.attempt_key
        and decisive.gpu_uuid = counters.gpu_uuid
),

found as (
    -- the state of an attempt of which nothing more is known still comes first: it is the failure reason
    select * replace (case when place = 90 then 0 else place end as place) from judged
    union all by name
    select * from intermediate.int_supporting_causes
),

once as (
    select *
    from found
    qualify row_number() over (
        partition by attempt_key, cause, coalesce(gpu_uuid, node, '') order by place, sequence
    ) = 1
),

ranked as (
    select *, row_number() over (partition by attempt_key order by place, sequence) as rank
    from once
)

select
    attempts.cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    attempts.attempt_key,
    attempts.job_id,
    attempts.team,
    attempts.user_name,
    from_ms(attempts.end_ms) as end_at,
    ranked.* exclude (attempt_key, place, sequence, at_ms),
    from_ms(ranked.at_ms) as cause_at,
    attempts.lost_gpu_ms,
    attempts.lost_cost
from ranked
inner join attempts using (attempt_key)
