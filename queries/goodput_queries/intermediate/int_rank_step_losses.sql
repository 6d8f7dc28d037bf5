-- What ranks lost inside steps by input, the slowness of others or of their own GPU: the step's length
-- without data waits held against the attempt's median. Of attempts in which nobody measured waiting and no
-- GPU was held back only the steps with a told loss have a row: a fleet has millions of others.
-- grain: attempt_key, step, rank
-- start_ms: the gang's start; after an undeclared gap a rank that starts later still waits until its own
-- work_ms: step less the rank's data wait (L' of accounting rules 1.4)
-- median_work_ms: median of work_ms over the attempt's steps, the first left out (M); null where not needed
-- straggler_ms: told by the job, else min(longest wait in a collective, excess of the step)
-- is_straggler: named: waits least, while the others' median wait and the excess are over 10 % of M
-- is_straggler_measured: the job or the NCCL profiler tells of waiting in this step
-- materialised: attempts, since splits, stragglers and the run page read it
with steps as (
    select steps.*, steps.start_ms = firsts.start_ms as is_first
    from temp.int_train_steps as steps
    inner join (
        select attempt_key, min(start_ms) as start_ms from temp.int_train_steps group by attempt_key
    ) as firsts using (attempt_key)
),

attempt_ranks as (
    select distinct attempt_key, rank, gpu_uuid from temp.int_rank_gpus
),

told as (select * from temp.int_rank_steps),

waits as (select * from temp.step_waits),

gaps as (select attempt_key, end_ms from temp.attempt_pieces where is_gap),

-- attempts in which every step of every rank matters for the medians
watched as (
    select distinct attempt_key from waits
    union
    select distinct attempt_key from temp.throttled_steps
),

worth as (
    select steps.attempt_key, steps.step, ranks.rank, ranks.gpu_uuid
    from temp.int_train_steps as steps
    inner join watched using (attempt_key)
    inner join attempt_ranks as ranks using (attempt_key)
    union all
    select told.attempt_key, told.step, told.rank, ranks.gpu_uuid
    from told
    inner join attempt_ranks as ranks using (attempt_key, rank)
    anti join watched using (attempt_key)
    where
        told.comm_s is not null
        or told.straggler_s is not null
        or told.throttle_s is not null
        or told.wait_data_s * 1000 >= build_threshold('gap_step_share') * (told.end_ms - told.start_ms)
        or told.wait_data_s * 1000 >= build_threshold('split_min_ms')
    union
    -- the first step after a gap, for the ranks that came to it late
    select told.attempt_key, told.step, told.rank, ranks.gpu_uuid
    from told
    inner join attempt_ranks as ranks using (attempt_key, rank)
    anti join watched using (attempt_key)
    inner join steps on told.attempt_key = steps.attempt_key and told.step = steps.step
    inner join gaps on steps.attempt_key = gaps.attempt_key and steps.start_ms = gaps.end_ms
),

rank_steps as (
    select
        steps.attempt_key,
        steps.step,
        steps.is_first,
        steps.median_step_ms,
        steps.fate,
        case
            when
                gaps.end_ms is not null
                and told.start_ms - steps.start_ms >= build_threshold('gap_step_share') * steps.median_step_ms
                then least(told.start_ms, steps.end_ms)
            else steps.start_ms
        end as start_ms,
        steps.start_ms as gang_start_ms,
        steps.end_ms,
        worth.rank,
        worth.gpu_uuid,
        coalesce(told.wait_data_s, 0) * 1000 as data_ms,
        told.wait_data_s is not null as is_data_measured,
        told.comm_s * 1000 as comm_ms,
        told.straggler_s * 1000 as told_straggler_ms,
        told.throttle_s * 1000 as told_throttle_ms,
        waits.wait_ms
    from worth
    inner join steps using (attempt_key, step)
    left join told
        on steps.attempt_key = told.attempt_key
        and steps.step = told.step
        and worth.rank = told.rank
    left join waits
        on steps.attempt_key = waits.attempt_key
        and steps.step = waits.step
        and worth.rank = waits.rank
    left join gaps on steps.attempt_key = gaps.attempt_key and steps.start_ms = gaps.end_ms
),

with_work as (
    select
        *,
        greatest(end_ms - start_ms - data_ms, 0) as work_ms,
        median(case when not is_first then greatest(end_ms - start_ms - data_ms, 0) end) over (
            partition by attempt_key, rank
        ) as median_work_ms
    from rank_steps
),

step_waits as (
    select
        attempt_key,
        step,
        min(wait_ms) as least_wait_ms,
        -- the median of the others: the least one is its own, at the bottom of the list
        list_aggregate(list(wait_ms order by wait_ms)[2:], 'median') as others_median_ms
    from with_work
    where wait_ms is not null
    group by attempt_key, step
),

with_others as (
    select with_work.*, step_waits.least_wait_ms, step_waits.others_median_ms
    from with_work
    left join step_waits using (attempt_key, step)
)

select
    attempt_key,
    step,
    rank,
    gpu_uuid,
    fate,
    gang_start_ms,
    start_ms,
    end_ms,
    data_ms,
    is_data_measured,
    comm_ms,
    told_throttle_ms,
    wait_ms,
    work_ms,
    median_work_ms,
    median_step_ms,
    coalesce(
        told_straggler_ms,
        case when wait_ms is not null then least(wait_ms, greatest(0, work_ms - median_work_ms)) end
    ) as straggler_ms,
    told_straggler_ms is not null or wait_ms is not null as is_straggler_measured,
    coalesce(
        -- the first step compiles and warms up on every rank
        not is_first
        and wait_ms = least_wait_ms
        and others_median_ms > build_threshold('straggler_share') * median_work_ms
        and work_ms - median_work_ms > build_threshold('straggler_share') * median_work_ms,
        false
    ) as is_straggler
from with_others
