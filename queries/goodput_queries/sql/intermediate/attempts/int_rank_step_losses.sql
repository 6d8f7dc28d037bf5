-- Losses of ranks inside steps by input, by slow peers or by their own GPU: the step's duration without data waits,
-- compared with the attempt's median. Attempts without measured waits and without a throttled GPU have a row only for
-- steps with a reported loss: a fleet has millions of others.
-- grain: attempt_key, step, rank
-- start_ms: the gang's start; after an undeclared gap a rank that starts later still waits until its own
-- work_ms: step less the rank's data wait
-- wait_ms: longest wait in a collective of the NCCL profiler
-- straggler_ms: waiting for late ranks: reported by the job; else by exposed time: what it is over the rank's that has
--  least of it; else of temp.part_waits; else min(wait_ms, excess of the step)
-- comm_ms: exposed communication, less straggler_ms unless the job reports both
-- comm_at_most_ms: time in all NCCL operations of the step, overlapped or not
-- measured_by: what straggler_ms comes from: job, profiler trace, step parts, comm_s, NCCL profiler; null: nothing measures it
-- is_straggler: named: waits least, while the others' median wait and the excess of work_ms over its median (M) are over
--  10 % of M; the wait it imposed on others in the attempt is worth naming
-- is_for_gang: only one rank reports waits, which then apply to all GPUs: the step has no other row
-- materialised: attempts, since splits, stragglers and the run page read it
-- skip_if_empty: temp.step_waits, temp.profiled_steps, temp.part_waits, temp.throttled_steps, temp.attempt_pieces where is_gap, temp.int_rank_steps where coalesce(wait_data_s, comm_s, straggler_s, throttle_s) is not null
with steps as (
    select
        steps.attempt_key, steps.step, steps.start_ms, steps.end_ms, steps.fate, steps.median_step_ms,
        steps.start_ms = firsts.start_ms as is_first
    from temp.int_train_steps as steps
    inner join (
        select attempt_key, min(start_ms) as start_ms from temp.int_train_steps group by attempt_key
    ) as firsts using (attempt_key)
),

attempt_ranks as (
    select distinct attempt_key, rank, gpu_uuid from temp.int_rank_gpus
),

rank_counts as (select attempt_key, count(*) as ranks from attempt_ranks group by attempt_key),

gaps as (select attempt_key, end_ms from temp.attempt_pieces where is_gap),

-- where only one rank reports waits, they are those of its gang
voices as (
    select attempt_key, min(rank) as voice_rank
    from temp.int_rank_steps as reported
    where coalesce(wait_data_s, comm_s, straggler_s, throttle_s) is not null
    group by attempt_key
    having count(distinct rank) = 1
),

-- attempts in which every step of every rank matters for the medians
watched as (
    select distinct attempt_key from temp.step_waits as waits
    union
    select distinct attempt_key from temp.profiled_steps as profiled
    union
    select distinct attempt_key from temp.throttled_steps
),

gap_steps as (
    select steps.attempt_key, steps.step
    from steps
    inner join gaps on steps.attempt_key = gaps.attempt_key and steps.start_ms = gaps.end_ms
),

worth as (
    select
        steps.* exclude (start_ms, end_ms),
        steps.start_ms as gang_start_ms,
        steps.end_ms,
        ranks.rank,
        ranks.gpu_uuid,
        reported.start_ms as rank_start_ms,
        reported.wait_data_s,
        reported.comm_s,
        reported.straggler_s,
        reported.throttle_s
    from steps
    semi join watched using (attempt_key)
    inner join attempt_ranks as ranks using (attempt_key)
    left join temp.int_rank_steps as reported using (attempt_key, step, rank)
    union all by name
    select
        steps.* exclude (start_ms, end_ms),
        steps.start_ms as gang_start_ms,
        steps.end_ms,
        reported.rank,
        ranks.gpu_uuid,
        reported.start_ms as rank_start_ms,
        reported.wait_data_s,
        reported.comm_s,
        reported.straggler_s,
        reported.throttle_s
    from temp.int_rank_steps as reported
    inner join attempt_ranks as ranks using (attempt_key, rank)
    inner join steps using (attempt_key, step)
    anti join watched using (attempt_key)
    left join temp.part_waits as part_waits using (attempt_key, step, rank)
    left join gap_steps using (attempt_key, step)
    where
        reported.comm_s is not null
        or reported.straggler_s is not null
        or reported.throttle_s is not null
        or reported.wait_data_s * 1000 >= threshold('gap_step_share') * steps.median_step_ms
        or reported.wait_data_s * 1000 >= threshold('split_min_ms')
        or part_waits.step is not null
        -- the first step after a gap, for the ranks that came to it late
        or gap_steps.step is not null
),

-- of gangs with other ranks: its own rows hold what the one rank reports
gang_reports as (
    select reported.attempt_key, reported.step, reported.wait_data_s, reported.comm_s, reported.straggler_s
    from temp.int_rank_steps as reported
    inner join voices on reported.attempt_key = voices.attempt_key and reported.rank = voices.voice_rank
    where
        reported.attempt_key in (
            select attempt_key from attempt_ranks inner join voices using (attempt_key) where rank <> voice_rank
        )
),

rank_steps as (
    select
        worth.attempt_key,
        worth.step,
        worth.is_first,
        worth.median_step_ms,
        worth.fate,
        case
            when
                gap_steps.step is not null
                and worth.rank_start_ms - worth.gang_start_ms >= threshold('gap_step_share') * worth.median_step_ms
                then least(worth.rank_start_ms, worth.end_ms)
            else worth.gang_start_ms
        end as start_ms,
        worth.gang_start_ms,
        worth.end_ms,
        worth.rank,
        worth.gpu_uuid,
        coalesce(worth.wait_data_s, gang_reports.wait_data_s, 0) * 1000 as data_ms,
        coalesce(worth.comm_s * 1000, profiled.exposed_ms) as exposed_ms,
        gang_reports.comm_s * 1000 as voice_comm_ms,
        -- of a rank that a profiler watches, that holds
        coalesce(
            worth.straggler_s, case when waits.wait_ms is null and profiled.wait_ms is null then gang_reports.straggler_s end
        ) * 1000 as reported_straggler_ms,
        worth.throttle_s * 1000 as reported_throttle_ms,
        case when worth.comm_s is null then profiled.wait_ms end as profiled_wait_ms,
        part_waits.wait_ms as part_wait_ms,
        waits.wait_ms,
        waits.comm_ms as operations_ms,
        coalesce(voices.voice_rank = worth.rank, false) as is_voice
    from worth
    left join voices using (attempt_key)
    left join gang_reports using (attempt_key, step)
    left join temp.step_waits as waits using (attempt_key, step, rank)
    left join temp.profiled_steps as profiled using (attempt_key, step, rank)
    left join temp.part_waits as part_waits using (attempt_key, step, rank)
    left join gap_steps using (attempt_key, step)
),

with_work as (
    select *, greatest(end_ms - start_ms - data_ms, 0) as work_ms from rank_steps
),

lone as (
    select attempt_key, step
    from rank_steps
    semi join voices using (attempt_key)
    group by attempt_key, step
    having count(*) = 1
),

-- steps with the exposed time of every rank: the last to arrive waits least
exposed_steps as (
    select with_work.attempt_key, with_work.step, min(with_work.exposed_ms) as least_exposed_ms
    from with_work
    inner join rank_counts using (attempt_key)
    where rank_counts.ranks > 1
    group by with_work.attempt_key, with_work.step, rank_counts.ranks
    having count(with_work.exposed_ms) = rank_counts.ranks
),

with_waits as (
    select
        with_work.*,
        coalesce(
            with_work.profiled_wait_ms,
            with_work.part_wait_ms,
            with_work.exposed_ms - exposed_steps.least_exposed_ms
        ) as exposed_wait_ms
    from with_work
    left join exposed_steps using (attempt_key, step)
),

-- of ranks with measured waits; the first step compiles and warms up
work_medians as (
    select attempt_key, rank, median(work_ms) as median_work_ms
    from with_work
    where
        not is_first
        and attempt_key in (select attempt_key from with_waits where coalesce(exposed_wait_ms, wait_ms) is not null)
    group by attempt_key, rank
),

step_waits as (
    select
        attempt_key,
        step,
        min(coalesce(exposed_wait_ms, wait_ms)) as least_wait_ms,
        -- the median of the others: the least one is its own, at the bottom of the list
        list_aggregate(list(coalesce(exposed_wait_ms, wait_ms) order by coalesce(exposed_wait_ms, wait_ms))[2:], 'median')
            as others_median_ms
    from with_waits
    where coalesce(exposed_wait_ms, wait_ms) is not null
    group by attempt_key, step
),

split as (
    select
        with_waits.*,
        case
            when reported_straggler_ms is not null then reported_straggler_ms
            -- jitter of exposed time stays communication
            when
                exposed_wait_ms
                < least(threshold('split_min_ms'), threshold('gap_step_share') * median_step_ms)
                then 0
            when exposed_wait_ms is not null then exposed_wait_ms
            when wait_ms is not null then least(wait_ms, greatest(0, work_ms - median_work_ms))
        end as straggler_ms,
        case
            when reported_straggler_ms is not null then 'job'
            when profiled_wait_ms is not null then 'profiler trace'
            when part_wait_ms is not null then 'step parts'
            when exposed_wait_ms is not null then 'comm_s'
            when wait_ms is not null then 'NCCL profiler'
        end as measured_by,
        coalesce(
            -- the first step compiles and warms up on every rank
            not is_first
            and coalesce(exposed_wait_ms, wait_ms) = least_wait_ms
            -- parts are known of the late steps alone, whose median is no measure
            and others_median_ms
            > threshold('straggler_share') * case when part_wait_ms is null then median_work_ms else median_step_ms end
            -- exposed time makes the step longer by itself, though every step be as long
            and (exposed_wait_ms is not null or work_ms - median_work_ms > threshold('straggler_share') * median_work_ms),
            false
        ) as is_late
    from with_waits
    left join step_waits using (attempt_key, step)
    left join work_medians using (attempt_key, rank)
),

-- who was late for a moment only is not worth naming: ranks never come at the same time
imposed as (
    select late.attempt_key, late.rank
    from split as late
    inner join split as others
        on late.attempt_key = others.attempt_key and late.step = others.step and late.rank <> others.rank
    where late.is_late
    group by late.attempt_key, late.rank
    having sum(others.straggler_ms) >= threshold('straggler_min_ms')
)

select
    split.attempt_key,
    split.step,
    split.rank,
    split.gpu_uuid,
    split.fate,
    split.gang_start_ms,
    split.start_ms,
    split.end_ms,
    split.data_ms,
    case
        when split.reported_straggler_ms is not null or split.straggler_ms is null
            then coalesce(split.exposed_ms, split.voice_comm_ms)
        when coalesce(split.exposed_ms, split.voice_comm_ms) is not null
            then greatest(coalesce(split.exposed_ms, split.voice_comm_ms) - split.straggler_ms, 0)
    end as comm_ms,
    split.reported_throttle_ms,
    split.wait_ms,
    split.work_ms,
    split.median_step_ms,
    split.straggler_ms,
    split.measured_by,
    case when split.operations_ms is not null then least(split.operations_ms, split.end_ms - split.start_ms) end
        as comm_at_most_ms,
    split.is_late and imposed.attempt_key is not null as is_straggler,
    split.is_voice and lone.attempt_key is not null as is_for_gang
from split
left join imposed using (attempt_key, rank)
left join lone using (attempt_key, step)
