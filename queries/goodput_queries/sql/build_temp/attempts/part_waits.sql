-- Waits for a late rank by the parts of a step that ranks report. The late rank has time that no part covers, over that of the
-- others; meanwhile they wait inside a part, mostly the backward with its collectives, which is longer than the late rank's.
-- Only of attempts whose waits nothing else measures, and of steps with a rank so late.
-- grain: attempt_key, step, rank
-- wait_ms: parts of the rank over those of the late one, at most the delay; 0: of the late one
-- skip_if_empty: temp.attempt_events where bwd_s is not null
with parts as (
    select
        attempt_key,
        rank,
        step,
        1000 * sum(fwd_s + bwd_s + coalesce(opt_s, 0)) as parts_ms,
        1000 * sum(dur_s - coalesce(data_s, 0)) - parts_ms as uncovered_ms,
        count(opt_s) = count(*) as has_optimizer
    from temp.attempt_events
    where event = 'step' and is_authoritative and dur_s is not null and fwd_s is not null and bwd_s is not null
    group by attempt_key, rank, step
),

ranks as (select attempt_key, count(distinct rank) as ranks from temp.int_rank_gpus group by attempt_key),

late as (
    select
        parts.attempt_key,
        parts.step,
        max(parts.uncovered_ms) - list_aggregate(list(parts.uncovered_ms order by parts.uncovered_ms desc)[2:], 'median')
            as delay_ms,
        arg_max(parts.parts_ms, parts.uncovered_ms) as parts_ms
    from parts
    inner join ranks using (attempt_key)
    where
        attempt_key not in (select attempt_key from temp.step_waits)
        and attempt_key not in (select attempt_key from temp.profiled_steps)
        and attempt_key not in (select attempt_key from temp.int_rank_steps where coalesce(comm_s, straggler_s) is not null)
    group by parts.attempt_key, parts.step, ranks.ranks
    -- what only some ranks report would be time that no part covers on the others
    having count(*) = ranks.ranks and count(*) > 1 and count(distinct parts.has_optimizer) = 1
)

select
    parts.attempt_key,
    parts.step,
    parts.rank,
    greatest(0, least(parts.parts_ms - late.parts_ms, late.delay_ms)) as wait_ms
from late
inner join temp.int_train_steps as steps using (attempt_key, step)
inner join parts using (attempt_key, step)
where
    late.delay_ms > threshold('straggler_share') * steps.median_step_ms
    and late.delay_ms >= threshold('split_min_ms')
