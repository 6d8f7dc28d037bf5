-- Steps of single ranks, with their attempt.
-- grain: attempt_key, rank, step
-- start_ms: end less the reported duration; without one, the end of the rank's previous step. From the source that counts
--     for the steps of that time; another one may add what it does not count
-- wait_data_s, comm_s, straggler_s, throttle_s: what the rank measured inside the step
-- tokens, flops, samples: of the rank, or of the gang where one speaks for it; gpu_tokens, gpu_flops: of one GPU
-- is_for_gang: a log reports amounts of the gang, whichever rank wrote it
-- other_off_ms: how much later a weaker source has the step's end; null where none has the step
-- materialised: attempts, since gang steps, splits and stragglers all read it
-- skip_if_empty: temp.attempt_events
with events as (
    select * from temp.attempt_events where event in ('step', 'step.start') and step is not null
),

-- most jobs report durations: only the others' events are sorted
ends as (
    select
        events.* replace (
            coalesce(
                lag(end_ms) over (
                    partition by attempt_key, rank, host, source
                    -- of one moment: the end of a step, then the start of the next one
                    order by ts, step, event = 'step', event_id
                ),
                end_ms
            ) as start_ms
        )
    from events
    where attempt_key in (select attempt_key from events where dur_s is null)
),

bounded as (
    select *, hash(attempt_key, rank, step) as place
    from (
        from events where dur_s is not null
        union all
        from ends where dur_s is null
    )
    where event = 'step'
),

-- most ranks report a step once, and to one source: only the others' are summed
repeated as (
    select hash(attempt_key, rank, step) as place
    from events
    where event = 'step'
    group by all
    having count(*) > 1
),

single as (
    select
        attempt_key, rank, step, start_ms, end_ms, data_s as wait_data_s, comm_s, straggler_s, throttle_s, tokens, flops,
        samples, gpu_tokens, gpu_flops, mfu_ratio, source = 'job-log' as is_for_gang, null::bigint as other_off_ms
    from bounded
    anti join (select attempt_key from events where event = 'step' and not is_authoritative) using (attempt_key)
    anti join repeated using (place)
),

steps as (
    select
        attempt_key,
        rank,
        step,
        is_authoritative,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        sum(data_s) as wait_data_s,
        sum(columns(['comm_s', 'straggler_s', 'throttle_s', 'tokens', 'flops', 'samples', 'gpu_tokens', 'gpu_flops'])),
        avg(mfu_ratio) as mfu_ratio,
        bool_or(source = 'job-log') as is_for_gang
    from bounded
    where
        place in (from repeated)
        or attempt_key in (select attempt_key from events where event = 'step' and not is_authoritative)
    group by attempt_key, rank, step, is_authoritative
),

others as (
    select
        * exclude (is_authoritative, start_ms)
    from steps
    where not is_authoritative
),

-- where the authoritative source does not say of any rank how much it did
uncounted as (
    select attempt_key
    from steps
    semi join others using (attempt_key)
    where is_authoritative
    group by attempt_key
    having count(coalesce(tokens, flops, samples, gpu_tokens, gpu_flops, mfu_ratio)) = 0
)

select
    steps.attempt_key,
    steps.rank,
    steps.step,
    steps.start_ms,
    steps.end_ms,
    coalesce(steps.wait_data_s, others.wait_data_s) as wait_data_s,
    coalesce(steps.comm_s, others.comm_s) as comm_s,
    coalesce(steps.straggler_s, others.straggler_s) as straggler_s,
    coalesce(steps.throttle_s, others.throttle_s) as throttle_s,
    case when uncounted.attempt_key is null then steps.tokens else others.tokens end as tokens,
    case when uncounted.attempt_key is null then steps.flops else others.flops end as flops,
    case when uncounted.attempt_key is null then steps.samples else others.samples end as samples,
    case when uncounted.attempt_key is null then steps.gpu_tokens else others.gpu_tokens end as gpu_tokens,
    case when uncounted.attempt_key is null then steps.gpu_flops else others.gpu_flops end as gpu_flops,
    case when uncounted.attempt_key is null then steps.mfu_ratio else others.mfu_ratio end as mfu_ratio,
    case when uncounted.attempt_key is null then steps.is_for_gang else others.is_for_gang end as is_for_gang,
    others.end_ms - steps.end_ms as other_off_ms
from steps
left join others using (attempt_key, rank, step)
left join uncounted using (attempt_key)
where steps.is_authoritative
union all
from single
