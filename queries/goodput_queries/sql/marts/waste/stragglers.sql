-- Stragglers: episodes of steps in which the other ranks waited for the same rank. An episode includes a few steps
-- without a named straggler in between, and steps that were rolled back.
-- grain: run_key, attempt, rank, first_step
-- access: team
-- steps: steps in which the rank is the straggler
-- imposed_wait_gpu_s: GPU-seconds that the other ranks of the gang waited in these steps
-- confidence: Likely: waits and step durations agree
-- evidence: source of the waits
with named as (
    select attempt_key, step, rank, gpu_uuid, measured_by, start_ms, end_ms
    from intermediate.int_rank_step_losses
    where is_straggler
),

imposed as (
    select attempt_key, step, sum(straggler_ms) as wait_ms
    from intermediate.int_rank_step_losses
    where not is_straggler
    group by attempt_key, step
),

marked as (
    select
        named.*,
        imposed.wait_ms,
        coalesce(named.step - lag(named.step) over rank_steps > 5, true) as is_new
    from named
    inner join imposed using (attempt_key, step)
    window rank_steps as (partition by named.attempt_key, named.rank order by named.step)
),

episodes as (
    select
        *,
        count_if(is_new) over (
            partition by attempt_key, rank order by step rows between unbounded preceding and current row
        ) as episode
    from marked
),

summed as (
    select
        attempt_key,
        rank,
        any_value(gpu_uuid) as gpu_uuid,
        min(measured_by) as measured_by,
        min(step) as first_step,
        max(step) as last_step,
        count(*) as steps,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        sum(wait_ms) / 1000.0 as imposed_wait_gpu_s
    from episodes
    group by attempt_key, rank, episode
    having sum(wait_ms) >= threshold('straggler_min_ms')
)

select
    attempts.cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    summed.rank,
    ranks.node,
    summed.gpu_uuid,
    units.gpu_index,
    summed.first_step,
    summed.last_step,
    summed.steps,
    from_ms(summed.start_ms) as start_at,
    from_ms(summed.end_ms) as end_at,
    summed.imposed_wait_gpu_s,
    summed.imposed_wait_gpu_s / 3600.0 * prices.price_per_gpu_h::double as imposed_wait_cost,
    'Likely' as confidence,
    'rank ' || summed.rank || case summed.measured_by
        when 'NCCL profiler'
            then ' waits least in the collectives of ' || summed.steps
                || ' steps that run over the attempt''s median by more than 10 %'
        when 'profiler trace' then ' waits least in the traced NCCL kernels of ' || summed.steps || ' steps'
        else ' has the least comm_s in ' || summed.steps || ' steps, the others over 10 % of a step more'
    end as evidence
from summed
inner join intermediate.int_attempts as attempts using (attempt_key)
left join intermediate.int_rank_gpus as ranks using (attempt_key, rank)
left join (
    select gpu_uuid, max(gpu_index) as gpu_index, max(gpu_model) as gpu_model
    from intermediate.int_gpu_units group by gpu_uuid
) as units on summed.gpu_uuid = units.gpu_uuid
left join intermediate.int_prices as prices
    on attempts.cluster = prices.cluster
    and coalesce(units.gpu_model, '') = prices.gpu_model
    and prices.mig_profile = ''
    and coalesce(attempts.partition, '') = prices.partition
    and coalesce(attempts.qos, '') = prices.qos
    and summed.start_ms >= prices.from_ms
    and summed.start_ms < prices.to_ms
where
    in_window(summed.start_ms, summed.end_ms)
    and in_scope(
        attempts.cluster, ranks.node, summed.gpu_uuid, units.gpu_model,
        attempts.team, attempts.user_name, attempts.run_key, attempts.partition
    )
