-- Stragglers: episodes of steps in which the other ranks waited for the same rank. An episode includes a few steps
-- without a named straggler in between, and steps that were rolled back.
-- grain: run_key, attempt, rank, first_step
-- access: team
-- skip_if_empty: intermediate.int_rank_step_losses where is_straggler
-- steps: steps in which the rank is the straggler
-- imposed_wait_gpu_s: GPU-seconds that the other ranks of the gang waited in these steps
-- confidence: Likely: waits and step durations agree
-- origin: host where its GPU ran kernels for less of the time than the others, by at least half of the delay; GPU where it ran
--  them all along; null: neither, or fewer readings than threshold straggler_readings
-- evidence: source of the waits, and the readings
with named as (
    select attempt_key, step, rank, gpu_uuid, measured_by, start_ms, end_ms
    from intermediate.int_rank_step_losses
    where is_straggler
),

imposed as (
    select attempt_key, step, sum(straggler_ms) as wait_ms
    from intermediate.int_rank_step_losses
    where not is_straggler and attempt_key in (select attempt_key from named)
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
        count_if(is_new) over (partition by attempt_key, rank order by step rows unbounded preceding) as episode
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
        sum(end_ms - start_ms) as step_ms,
        sum(wait_ms) / 1000.0 as imposed_wait_gpu_s
    from episodes
    group by attempt_key, rank, episode
    having sum(wait_ms) >= threshold('straggler_min_ms')
),

-- whether its GPU ran a kernel meanwhile: the others run those of the collective that they wait in
readings as (
    select
        summed.attempt_key,
        summed.rank,
        summed.first_step,
        avg(samples.gpu_busy_ratio) filter (where ranks.rank = summed.rank) as busy_ratio,
        avg(samples.gpu_busy_ratio) filter (where ranks.rank <> summed.rank) as others_busy_ratio,
        1000 * any_value(summed.imposed_wait_gpu_s / summed.step_ms) / (count(distinct ranks.rank) - 1) as delay_ratio
    from summed
    inner join intermediate.int_rank_gpus as ranks using (attempt_key)
    inner join staging.stg_gpu_samples as samples
        on ranks.gpu_uuid = samples.gpu_uuid
        and samples.ts >= from_ms(summed.start_ms)
        and samples.ts < from_ms(summed.end_ms)
    where samples.gpu_busy_ratio is not null
    group by summed.attempt_key, summed.rank, summed.first_step
    having
        count(*) filter (where ranks.rank = summed.rank) >= threshold('straggler_readings')
        and count(distinct ranks.rank) > 1
),

origins as (
    select
        *,
        case
            when others_busy_ratio - busy_ratio >= delay_ratio / 2 then 'host'
            when busy_ratio >= 1 - delay_ratio / 2 then 'GPU'
        end as origin
    from readings
)

select
    attempts.cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    summed.* exclude (attempt_key, measured_by, start_ms, end_ms, step_ms),
    ranks.node,
    units.gpu_index,
    from_ms(summed.start_ms) as start_at,
    from_ms(summed.end_ms) as end_at,
    summed.imposed_wait_gpu_s / 3600.0 * prices.price_per_gpu_h::double as imposed_wait_cost,
    origins.origin,
    'Likely' as confidence,
    'rank ' || summed.rank || case summed.measured_by
        when 'NCCL profiler'
            then ' waits least in the collectives of ' || summed.steps
                || ' steps that run over the attempt''s median by more than 10 %'
        when 'step parts'
            then ' spends ' || case
                when delays.s < 1 then printf('%.1f ms', 1000 * delays.s) else printf('%.2f s', delays.s)
            end || ' of ' || summed.steps || ' steps outside of forward and backward, which take the others that much longer'
        when 'profiler trace' then ' waits least in the traced NCCL kernels of ' || summed.steps || ' steps'
        else ' has the least comm_s in ' || summed.steps || ' steps, the others over 10 % of a step more'
    end || case
        when origins.origin is null then ''
        else printf(
            '; its GPU ran kernels %.0f %% of that time, the others'' %.0f %%: the delay is on the %s',
            100 * origins.busy_ratio, 100 * origins.others_busy_ratio, origins.origin
        )
    end as evidence
from summed
inner join (
    select attempt_key, count(distinct rank) as ranks from intermediate.int_rank_gpus group by attempt_key
) as gangs using (attempt_key)
cross join lateral (select summed.imposed_wait_gpu_s / summed.steps / (gangs.ranks - 1) as s) as delays
left join origins using (attempt_key, rank, first_step)
inner join intermediate.int_attempts as attempts using (attempt_key)
left join intermediate.int_rank_gpus as ranks using (attempt_key, rank)
left join intermediate.int_gpu_names as units on summed.gpu_uuid = units.gpu_uuid
left join intermediate.int_prices as prices on is_price_of(
    prices, attempts.cluster, units.gpu_model, '', attempts.partition, attempts.qos,
    summed.start_ms, summed.start_ms + 1
)
where
    in_window(summed.start_ms, summed.end_ms)
    and in_scope(
        attempts.cluster, ranks.node, summed.gpu_uuid, units.gpu_model,
        attempts.team, attempts.user_name, attempts.run_key, attempts.partition
    )
