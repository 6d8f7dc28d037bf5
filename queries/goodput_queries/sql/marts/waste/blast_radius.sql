-- Throttled, faulty or late GPUs that delayed their gang: their own loss and the waits of the other GPUs for them.
-- Covers retained steps of whole attempts that overlap the window.
-- grain: run_key, attempt, gpu_uuid
-- access: team
-- reason: faulty (a hardware error), throttled, late (its rank waited least, and nothing of its GPU says why)
-- own_gpu_s: throttle loss of the GPU itself
-- peers_wait_gpu_s: waiting of the other GPUs of the gang for it
-- peers: number of GPUs that waited; where several GPUs are throttled in one step, the waits are attributed to one
-- gang_gpu_s: own_gpu_s + peers_wait_gpu_s: what the GPU cost the run
-- gang_cost: null where the rate card has no price
with caused as (
    select
        attempt_key,
        by_gpu_uuid as gpu_uuid,
        case
            when bool_or(phase = 'faulty_peer') then 'faulty'
            when bool_or(category = 'throttled' or phase = 'throttled_peer') then 'throttled'
            else 'late'
        end as reason,
        coalesce(sum(end_ms - start_ms) filter (where category = 'throttled'), 0)::bigint as own_ms,
        coalesce(sum(end_ms - start_ms) filter (where category = 'straggler_wait'), 0)::bigint as peers_ms,
        count(distinct gpu_uuid) filter (where category = 'straggler_wait') as peers,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms
    from intermediate.int_step_splits
    where by_gpu_uuid is not null
    group by attempt_key, by_gpu_uuid
)

select
    attempts.cluster,
    attempts.run_key,
    attempts.run_id,
    attempts.attempt,
    caused.attempt_key,
    units.node,
    caused.gpu_uuid,
    units.gpu_index,
    caused.reason,
    from_ms(caused.start_ms) as start_at,
    from_ms(caused.end_ms) as end_at,
    caused.peers,
    caused.own_ms / 1000.0 as own_gpu_s,
    caused.peers_ms / 1000.0 as peers_wait_gpu_s,
    (caused.own_ms + caused.peers_ms) / 1000.0 as gang_gpu_s,
    (caused.own_ms + caused.peers_ms) / 3600000.0 * prices.price_per_gpu_h::double as gang_cost
from caused
inner join intermediate.int_attempts as attempts using (attempt_key)
left join (
    select gpu_uuid, max(node) as node, max(gpu_index) as gpu_index, max(gpu_model) as gpu_model
    from intermediate.int_gpu_units
    group by gpu_uuid
) as units using (gpu_uuid)
left join intermediate.int_prices as prices on is_price_of(
    prices, attempts.cluster, units.gpu_model, '', attempts.partition, attempts.qos,
    caused.start_ms, caused.start_ms + 1
)
where
    in_window(caused.start_ms, caused.end_ms)
    and in_scope(
        attempts.cluster, units.node, caused.gpu_uuid, units.gpu_model,
        attempts.team, attempts.user_name, attempts.run_key, attempts.partition
    )
