-- Losses inside retained steps, laid out as real intervals from the step's start in the order data stall,
-- throttle, straggler wait, exposed communication; what is left is productive only where waiting and
-- communication were both measured. They lie in the steps of the timeline (step_unsplit), whose time they take.
-- grain: attempt_key, gpu_uuid, start_ms
-- A rank that after an undeclared gap starts later than its gang is still in the gap until then.
-- gpu_uuid: null: only one rank reports waits, which apply to all GPUs
-- phase: why a rank waited for another: throttled_peer, faulty_peer (a hardware error); undeclared_gap
-- by_gpu_uuid: the GPU that was throttled, faulty or late: of its own loss, and of the waits for it
-- measured_by: what a wait for a late rank is known from: int_rank_step_losses, telemetry
-- is_cut: the amounts exceeded the step and the last ones were cut: of the interval that it ends with
-- stretch_ms: of intermediate.int_run_timeline; cell_ms: start of the ten minutes that the interval lies in
-- materialised: attempts, since amounts, cut windows and the run page read it
-- skip_if_empty: temp.int_rank_step_losses
-- change_tracking: start_ms, end_ms
with ranks as (
    select
        attempt_key,
        rank,
        count(*) over (partition by attempt_key) as ranks,
        gpu_uuid is null or rank = min(rank) over (partition by attempt_key, gpu_uuid) as is_first
    from temp.int_rank_gpus
),

-- of ranks that share one GPU the first speaks for it: its parts wait together
losses as (
    select losses.*, ranks.ranks
    from temp.int_rank_step_losses as losses
    inner join ranks using (attempt_key, rank)
    where losses.fate = 'kept' and ranks.is_first
),

gaps as (
    select attempt_key, category, end_ms
    from temp.int_run_timeline
    where phase = 'undeclared_gap'
),

throttled as (select * from temp.throttled_steps),

clean_medians as (
    select losses.attempt_key, median(losses.work_ms) as clean_work_ms
    from temp.int_rank_step_losses as losses
    anti join throttled using (attempt_key, step)
    where losses.attempt_key in (select attempt_key from throttled)
    group by losses.attempt_key
),

-- a rank that evidence shows to be late; the cause, where its GPU's telemetry has one
named as (
    select
        late.attempt_key,
        late.step,
        any_value(late.gpu_uuid) as gpu_uuid,
        case
            when bool_or(throttled.gpu_uuid is not null or coalesce(late.reported_throttle_ms, 0) > 0) then 'throttled_peer'
            when bool_or(faulty.gpu_uuid is not null) then 'faulty_peer'
        end as phase
    from losses as late
    left join throttled using (attempt_key, step, gpu_uuid)
    left join temp.faulty_gpus as faulty
        on late.attempt_key = faulty.attempt_key
        and late.gpu_uuid = faulty.gpu_uuid
        and faulty.error_ms between late.start_ms - threshold('fault_reach_ms') and late.end_ms
    where late.is_straggler
    group by late.attempt_key, late.step
),

-- where the ranks wait for another than the GPU held back, that one costs nothing
held_back as (
    select throttled.attempt_key, throttled.step, min(throttled.gpu_uuid) as gpu_uuid
    from throttled
    left join named using (attempt_key, step)
    where named.step is null or named.phase = 'throttled_peer'
    group by throttled.attempt_key, throttled.step
),

-- where only one rank reports waits they apply to all GPUs, except one that was slowed down
gang_gpus as (
    select distinct ranks.attempt_key, holds.gpu_uuid
    from ranks
    inner join temp.int_attempts as attempts using (attempt_key)
    inner join intermediate.int_holds as holds using (job_run_key)
    where ranks.ranks = 1 and ranks.attempt_key in (select attempt_key from throttled)
),

of_gpus as (
    select
        losses.* replace (
            case
                when losses.ranks > 1 and not losses.is_for_gang then losses.gpu_uuid
                else gang_gpus.gpu_uuid
            end as gpu_uuid
        )
    from losses
    left join gang_gpus using (attempt_key)
    where losses.ranks = 1 or losses.is_for_gang or losses.gpu_uuid is not null
),

-- one GPU held back costs its gang: its own excess is throttling, the others wait for it
causes as (
    select
        of_gpus.*,
        case
            when held_back.step is not null then greatest(0, of_gpus.work_ms - clean_medians.clean_work_ms)
        end as throttle_loss_ms,
        throttled.gpu_uuid is not null as is_held_back,
        named.step is not null as is_named,
        coalesce(named.phase, case when held_back.step is not null then 'throttled_peer' end) as phase,
        coalesce(case when named.phase is not null then named.gpu_uuid end, held_back.gpu_uuid) as by_gpu_uuid,
        case when named.phase is null then named.gpu_uuid end as late_gpu_uuid
    from of_gpus
    left join clean_medians using (attempt_key)
    left join held_back using (attempt_key, step)
    left join named using (attempt_key, step)
    left join throttled
        on of_gpus.attempt_key = throttled.attempt_key
        and of_gpus.step = throttled.step
        and of_gpus.gpu_uuid = throttled.gpu_uuid
),

waits as (
    select
        *,
        case
            -- measured without overlap, or not at all: the throttled GPU's excess is what the others waited
            when is_held_back or throttle_loss_ms is null then coalesce(straggler_ms, 0)
            when coalesce(measured_by, 'NCCL profiler') = 'NCCL profiler'
                then greatest(coalesce(straggler_ms, 0), throttle_loss_ms)
            else straggler_ms
        end as all_wait_ms
    from causes
),

unsplit as (
    select
        attempt_key, start_ms, end_ms, stretch_ms,
        row_number() over (partition by attempt_key order by start_ms) as n
    from temp.int_run_timeline
    where category = 'step_unsplit'
),

-- next_ms: start of the next step; n, until_ms: of the piece of the timeline that the step begins in
places as (
    select steps.*, unsplit.n, unsplit.stretch_ms, unsplit.end_ms as until_ms
    from (
        select attempt_key, start_ms, lead(start_ms) over (partition by attempt_key order by start_ms) as next_ms
        from temp.int_train_steps
    ) as steps
    asof left join unsplit on steps.attempt_key = unsplit.attempt_key and steps.start_ms >= unsplit.start_ms
),

amounts as (
    select
        waits.attempt_key,
        waits.gpu_uuid,
        waits.gang_start_ms,
        waits.start_ms,
        waits.end_ms,
        waits.end_ms - waits.start_ms as length_ms,
        waits.median_step_ms,
        gaps.category as gap_category,
        case
            when waits.data_ms >= least(threshold('split_min_ms'), threshold('gap_step_share') * waits.median_step_ms)
                then waits.data_ms
            else 0
        end as data_ms,
        coalesce(waits.reported_throttle_ms, case when waits.is_held_back then waits.throttle_loss_ms end, 0)
            as throttle_ms,
        -- what the named rank's GPU explains is explained whole, else as far as it was held back
        case
            when waits.is_held_back or waits.phase is null then 0
            when waits.is_named then waits.all_wait_ms
            else least(waits.all_wait_ms, waits.throttle_loss_ms)
        end as caused_wait_ms,
        waits.all_wait_ms,
        coalesce(waits.comm_ms, 0) as comm_ms,
        waits.phase,
        waits.by_gpu_uuid,
        waits.late_gpu_uuid,
        coalesce(waits.measured_by, 'telemetry') as measured_by,
        waits.measured_by is not null and waits.comm_ms is not null as is_measured,
        -- the moment between a fully measured step and the next one is the step's too
        case
            when places.next_ms - waits.end_ms < gap_of_step_max_ms(waits.median_step_ms) then places.next_ms
            else waits.end_ms
        end as productive_end_ms,
        places.n,
        places.stretch_ms,
        places.until_ms
    from waits
    inner join places on waits.attempt_key = places.attempt_key and waits.gang_start_ms = places.start_ms
    left join gaps
        on waits.attempt_key = gaps.attempt_key and waits.gang_start_ms = gaps.end_ms
),

-- rounded on the running sum, so that the parts of a step never drift from their total
ends as (
    select
        *,
        start_ms + least(length_ms, cast(round(data_ms) as bigint)) as data_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms) as bigint)) as throttle_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms + caused_wait_ms) as bigint)) as caused_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms + all_wait_ms) as bigint)) as straggler_end_ms,
        start_ms + least(length_ms, cast(round(data_ms + throttle_ms + all_wait_ms + comm_ms) as bigint))
            as comm_end_ms,
        data_ms + throttle_ms + all_wait_ms + comm_ms > length_ms + 1 as is_cut
    from amounts
),

parts as (
    select
        attempt_key,
        gpu_uuid,
        n,
        stretch_ms,
        until_ms,
        is_cut,
        start_ms + length_ms as step_end_ms,
        greatest(start_ms + length_ms, productive_end_ms) as last_end_ms,
        unnest([
            gap_category, 'data_stall', 'throttled', 'straggler_wait', 'straggler_wait', 'exposed_comm', 'productive'
        ]) as category,
        unnest([
            case when gap_category is not null then 'undeclared_gap' end, null, null, phase, null, null, null
        ]) as phase,
        unnest([
            null, null, case when throttle_ms > 0 then gpu_uuid end, by_gpu_uuid, late_gpu_uuid, null, null
        ]) as by_gpu_uuid,
        unnest([null, null, null, measured_by, measured_by, null, null]) as measured_by,
        unnest([
            gang_start_ms, start_ms, data_end_ms, throttle_end_ms, caused_end_ms, straggler_end_ms, comm_end_ms
        ]) as start_ms,
        unnest([
            start_ms,
            data_end_ms,
            throttle_end_ms,
            caused_end_ms,
            straggler_end_ms,
            comm_end_ms,
            case when is_measured then productive_end_ms else comm_end_ms end
        ]) as end_ms
    from ends
),

laid as (
    -- of a cut step the part that it ends with
    select * exclude (step_end_ms) replace (is_cut and end_ms = step_end_ms as is_cut)
    from parts
    where end_ms > start_ms
),

-- a phase declared inside a step, or waiting for the gang, comes before what the step says
interrupted as (
    select laid.* replace (unsplit.n as n), laid.n as first_n
    from (select * from laid where coalesce(until_ms, 0) < last_end_ms and coalesce(until_ms, 0) < end_ms) as laid
    asof join unsplit on laid.attempt_key = unsplit.attempt_key and laid.end_ms > unsplit.start_ms
),

within as (
    select * exclude (n, until_ms, last_end_ms) from laid where until_ms >= end_ms
    union all by name
    select
        parts.* exclude (n, first_n, until_ms, last_end_ms, part_n) replace (
            greatest(parts.start_ms, unsplit.start_ms) as start_ms,
            least(parts.end_ms, unsplit.end_ms) as end_ms,
            unsplit.stretch_ms as stretch_ms
        )
    from (select *, unnest(range(coalesce(first_n, 1), n + 1)) as part_n from interrupted) as parts
    inner join unsplit on parts.attempt_key = unsplit.attempt_key and parts.part_n = unsplit.n
    where unsplit.end_ms > parts.start_ms
),

cells as (
    select *, start_ms // ten_minutes_ms() * ten_minutes_ms() as cell_ms
    from within
    where start_ms // ten_minutes_ms() = (end_ms - 1) // ten_minutes_ms()
    union all
    select *, unnest(range(start_ms // ten_minutes_ms(), (end_ms - 1) // ten_minutes_ms() + 1)) * ten_minutes_ms() as cell_ms
    from within
    where start_ms // ten_minutes_ms() < (end_ms - 1) // ten_minutes_ms()
)

select
    attempt_key,
    gpu_uuid,
    category,
    phase,
    by_gpu_uuid,
    measured_by,
    greatest(start_ms, cell_ms) as start_ms,
    least(end_ms, cell_ms + ten_minutes_ms()) as end_ms,
    is_cut and end_ms <= cell_ms + ten_minutes_ms() as is_cut,
    stretch_ms,
    cell_ms
from cells
