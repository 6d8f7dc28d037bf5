-- Losses inside kept steps, laid out as real intervals from the step's start in the order data stall,
-- throttle, straggler wait, exposed communication; what is left is productive only where waiting and
-- communication were both measured.
-- grain: attempt_key, gpu_uuid, start_ms
-- A rank that after an undeclared gap starts later than its gang is still in the gap until then.
-- gpu_uuid: null: the one rank that speaks, speaks for all
-- is_cut: the amounts exceeded the step and the last ones were cut
-- materialised: attempts, since each GPU of the gang joins it
-- dirties: start_ms, end_ms of attempt_key
with losses as (
    select *
    from temp.int_rank_step_losses
    where fate = 'kept'
),

gaps as (
    select attempt_key, category, end_ms
    from temp.int_run_timeline
    where phase = 'undeclared_gap'
),

ranks as (
    select attempt_key, count(distinct rank) as ranks from temp.int_rank_gpus group by attempt_key
),

throttled as (select * from temp.throttled_steps),

clean_medians as (
    select losses.attempt_key, median(losses.work_ms) as clean_work_ms
    from temp.int_rank_step_losses as losses
    anti join throttled using (attempt_key, step)
    where losses.attempt_key in (select attempt_key from throttled)
    group by losses.attempt_key
),

-- one GPU held back costs its gang: its own excess is throttling, the others wait for it
throttle_losses as (
    select
        losses.attempt_key,
        losses.step,
        losses.rank,
        throttled.gpu_uuid is not null as is_own,
        greatest(0, losses.work_ms - clean_medians.clean_work_ms) as loss_ms
    from losses
    inner join clean_medians using (attempt_key)
    semi join throttled using (attempt_key, step)
    left join throttled using (attempt_key, step, gpu_uuid)
),

amounts as (
    select
        losses.attempt_key,
        case when ranks.ranks > 1 then losses.gpu_uuid end as gpu_uuid,
        losses.gang_start_ms,
        losses.start_ms,
        losses.end_ms,
        losses.end_ms - losses.start_ms as length_ms,
        gaps.category as gap_category,
        case
            when losses.data_ms >= least(build_threshold('split_min_ms'), build_threshold('gap_step_share') * losses.median_step_ms)
                then losses.data_ms
            else 0
        end as data_ms,
        coalesce(losses.told_throttle_ms, case when throttle_losses.is_own then throttle_losses.loss_ms end, 0)
            as throttle_ms,
        greatest(
            coalesce(losses.straggler_ms, 0),
            coalesce(case when not throttle_losses.is_own then throttle_losses.loss_ms end, 0)
        ) as straggler_ms,
        coalesce(losses.comm_ms, 0) as comm_ms,
        losses.is_straggler_measured and losses.comm_ms is not null as is_measured
    from losses
    inner join ranks using (attempt_key)
    left join throttle_losses using (attempt_key, step, rank)
    left join gaps
        on losses.attempt_key = gaps.attempt_key and losses.gang_start_ms = gaps.end_ms
    where ranks.ranks = 1 or losses.gpu_uuid is not null
),

-- rounded on the running sum, so that the parts of a step never drift from their total
ends as (
    select
        *,
        start_ms + least(length_ms, cast(round(data_ms) as bigint)) as data_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms) as bigint)) as throttle_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms + straggler_ms) as bigint))
            as straggler_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms + straggler_ms + comm_ms) as bigint))
            as comm_end_ms,
        data_ms + throttle_ms + straggler_ms + comm_ms > length_ms + 1 as is_cut
    from amounts
),

parts as (
    select
        attempt_key,
        gpu_uuid,
        is_cut,
        unnest([gap_category, 'data_stall', 'throttled', 'straggler_wait', 'exposed_comm', 'productive']) as category,
        unnest([gang_start_ms, start_ms, data_end_ms, throttle_end_ms, straggler_end_ms, comm_end_ms]) as start_ms,
        unnest([
            start_ms,
            data_end_ms,
            throttle_end_ms,
            straggler_end_ms,
            comm_end_ms,
            case when is_measured then end_ms else comm_end_ms end
        ]) as end_ms
    from ends
),

marked as (
    select
        *,
        (category, start_ms) is distinct from lag((category, end_ms)) over (
            partition by attempt_key, gpu_uuid order by start_ms, end_ms
        ) as is_new
    from parts
    where end_ms > start_ms
),

numbered as (
    select
        *,
        sum(is_new::integer) over (
            partition by attempt_key, gpu_uuid order by start_ms
            rows between unbounded preceding and current row
        ) as part
    from marked
)

select
    attempt_key,
    gpu_uuid,
    any_value(category) as category,
    min(start_ms) as start_ms,
    max(end_ms) as end_ms,
    bool_or(is_cut) as is_cut
from numbered
group by attempt_key, gpu_uuid, part
