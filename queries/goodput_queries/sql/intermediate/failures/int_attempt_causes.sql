-- Why an attempt ended badly, as far as evidence goes: the first of its candidates.
-- grain: attempt_key
-- evaluated: first
-- skip_if_empty: intermediate.int_attempts
-- is_platform: the evidence names a failure of the infrastructure
-- blame, is_credited: of the cause, by reference.blame_by_cause; a cause it does not list is the job's own
-- trouble_from_ms: from when on an error may be its cause: five minutes before the end, or the start of its stall
-- class: hardware, node, network, host memory, storage, numerics, user code, scheduler, unknown
-- fix: what to do against it, where that is known (an Xid's recommended action)
-- confidence: Confirmed (the scheduler or a hardware Xid on a GPU of the attempt), Likely (the job said so), Not confirmed
with firsts as (
    select
        attempt_key,
        arg_min(
            {
                cause: cause, blame_cause: blame_cause, class: class, is_platform: is_platform, confidence: confidence,
                evidence: evidence, what_to_do: what_to_do
            },
            place * 1000000 + sequence
        ) as found
    from intermediate.int_attempt_cause_candidates
    group by attempt_key
)

select
    firsts.attempt_key,
    firsts.found.cause as cause,
    firsts.found.class as class,
    firsts.found.is_platform as is_platform,
    attempts.trouble_from_ms,
    coalesce(blames.blame, 'own') as blame,
    coalesce(blames.is_credited::boolean, false) as is_credited,
    firsts.found.confidence as confidence,
    firsts.found.evidence as evidence,
    firsts.found.what_to_do as fix
from firsts
inner join intermediate.int_failed_attempts as attempts using (attempt_key)
left join reference.blame_by_cause as blames
    on blames.applies_to = 'ending' and firsts.found.blame_cause = blames.cause
