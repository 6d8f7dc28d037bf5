-- Goodput by throughput of the scope's runs in its window: the work of steps that were not lost over what the ceiling gives in
-- all allocated time. It is a second way to goodput: the share of time in these steps x their speed over the ceiling, so that it
-- counts what time does not, steps that are slower than they could be.
-- grain: run_key
-- access: team
-- skip_if_empty: intermediate.int_train_steps where tokens is not null or samples is not null
-- work_unit: tokens, else samples; work: of steps that were not lost, of a step at an end of the window its part
-- held_ms: allocated GPU time; goodput_ratio: by time: useful / allocated; step_ratio: time of these steps / allocated
-- work_per_gpu_s: of one GPU in these steps; ceiling_per_gpu_s: the most that it could do
-- ceiling_source: declared by the job, as what it says; else best measured: of the run itself or of one of its name, parameters,
--  GPU model and size; else the data sheet: at the peak FLOP/s of its MFU
-- ceiling_ratio: work_per_gpu_s / ceiling_per_gpu_s; throughput_goodput_ratio: work / (ceiling x allocated time)
-- ceiling_reason: why they are not known, or above 1
with steps as (
    select
        attempts.run_key,
        count(*) as steps,
        count(steps.tokens) as with_tokens,
        count(steps.samples) as with_samples,
        sum((scope_end(steps.end_ms) - scope_start(steps.start_ms)) * attempts.gpus) as step_ms,
        sum(columns(['tokens', 'samples']) * (scope_end(steps.end_ms) - scope_start(steps.start_ms)) / (steps.end_ms - steps.start_ms))
    from intermediate.int_train_steps as steps
    inner join intermediate.int_attempts as attempts using (attempt_key)
    where
        in_window(steps.start_ms, steps.end_ms)
        and steps.end_ms > steps.start_ms
        and steps.fate != 'lost'
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
        and in_cluster(attempts.cluster)
    group by attempts.run_key
),

worked as (
    select
        run_key,
        step_ms,
        case when with_tokens = steps then 'tokens' when with_samples = steps then 'samples' end as work_unit,
        case work_unit when 'tokens' then tokens else samples end as work,
        1000 * work / step_ms as work_per_gpu_s
    from steps
    where work_unit is not null
),

times as (
    select
        run_key,
        sum(gpu_ms)::bigint as held_ms,
        coalesce(sum(gpu_ms) filter (where is_useful(category)), 0) / sum(gpu_ms) as goodput_ratio
    from marts.run_categories
    group by run_key
),

declared as (
    select
        run_key,
        max(try_cast(value as double)) filter (where attribute = 'ceiling_tokens_per_gpu_s') as tokens,
        max(try_cast(value as double)) filter (where attribute = 'ceiling_samples_per_gpu_s') as samples,
        max(value) filter (where attribute = 'ceiling_source') as said
    from marts.run_attributes
    where attribute[:8] = 'ceiling_'
    group by run_key
),

ceilings as (
    select
        worked.*,
        case worked.work_unit when 'tokens' then declared.tokens else declared.samples end as declared_per_gpu_s,
        declared.said,
        peers.speed / speeds.best_ratio / peers.gpus as own_per_gpu_s,
        peers.best_peer_speed / peers.gpus as peer_per_gpu_s,
        worked.work_per_gpu_s / nullif(speeds.mfu_ratio, 0) as sheet_per_gpu_s
    from worked
    left join declared using (run_key)
    left join marts.run_peers as peers on worked.run_key = peers.run_key and worked.work_unit = peers.speed_unit
    left join marts.run_speed as speeds on worked.run_key = speeds.run_key
),

known as (
    select
        * exclude (declared_per_gpu_s, said, own_per_gpu_s, peer_per_gpu_s, sheet_per_gpu_s),
        coalesce(declared_per_gpu_s, greatest(own_per_gpu_s, peer_per_gpu_s), sheet_per_gpu_s) as ceiling_per_gpu_s,
        case
            when declared_per_gpu_s > 0 then concat_ws(': ', 'declared', said)
            when peer_per_gpu_s > coalesce(own_per_gpu_s, 0) then 'best measured of other runs of its name and size'
            when own_per_gpu_s is not null then 'best measured of the run itself'
            when sheet_per_gpu_s is not null then 'data sheet: peak FLOP/s of the GPU'
        end as ceiling_source,
        work_per_gpu_s / ceiling_per_gpu_s as ceiling_ratio
    from (select * replace (case when declared_per_gpu_s > 0 then declared_per_gpu_s end as declared_per_gpu_s) from ceilings)
)

select
    known.* exclude (step_ms),
    times.held_ms,
    times.goodput_ratio,
    known.step_ms / times.held_ms as step_ratio,
    step_ratio * known.ceiling_ratio as throughput_goodput_ratio,
    case
        when known.ceiling_ratio > 1 then 'above its ceiling, which is too low'
        when known.ceiling_ratio is null
            then 'no ceiling is declared, no like run and fewer than ten windows of ten steps are known, and no MFU'
    end as ceiling_reason
from known
inner join times using (run_key)
