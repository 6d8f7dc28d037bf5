-- GPUs of serving endpoints in the scope's window, with the job run that held them, their cost and energy. An endpoint
-- that shares a GPU with others has an equal part of it.
-- grain: cluster, endpoint, gpu_uuid, job_run_key
-- access: team
-- method: how the GPU is known; see intermediate.int_serving_gpus
-- job_run_key, run_key, team, user_name: who held it; null: no job run
-- start_ms, end_ms: first and last moment of it in the window
-- gpu_ms: milliseconds of a whole GPU
-- cost: null where the rate card has no price
-- energy_j: mean power of ten minutes x gpu_ms; measured_ms: of gpu_ms, with a power reading
with maps as (
    select
        maps.cluster,
        maps.endpoint,
        maps.gpu_uuid,
        maps.method,
        scope_start(maps.start_ms) as start_ms,
        scope_end(least(coalesce(maps.end_ms, clusters.as_of_ms), clusters.as_of_ms)) as end_ms
    from intermediate.int_serving_gpus as maps
    inner join intermediate.int_clusters as clusters using (cluster)
    where in_window(maps.start_ms, maps.end_ms)
),

shared as (
    select
        maps.*,
        (
            select count(distinct (others.cluster, others.endpoint))
            from maps as others
            where others.gpu_uuid = maps.gpu_uuid and others.start_ms < maps.end_ms and others.end_ms > maps.start_ms
        ) as endpoints
    from maps
    where maps.end_ms > maps.start_ms
),

held as (
    select
        shared.*,
        holds.job_run_key,
        greatest(shared.start_ms, holds.start_ms) as held_from_ms,
        least(shared.end_ms, coalesce(holds.end_ms, 9223372036854775807)) as held_to_ms
    from shared
    inner join intermediate.int_holds as holds
        on shared.gpu_uuid = holds.gpu_uuid
        and holds.start_ms < shared.end_ms
        and coalesce(holds.end_ms, 9223372036854775807) > shared.start_ms
        and holds.gpu_instance = ''
),

pieces as (
    select
        cluster, endpoint, gpu_uuid, method, endpoints, job_run_key,
        held_from_ms as start_ms, held_to_ms as end_ms, held_to_ms - held_from_ms as length_ms
    from held
    union all
    select
        shared.cluster, shared.endpoint, shared.gpu_uuid, shared.method, shared.endpoints, null, shared.start_ms, shared.end_ms,
        shared.end_ms - shared.start_ms - coalesce(sum(held.held_to_ms - held.held_from_ms), 0) as length_ms
    from shared
    left join held using (cluster, endpoint, gpu_uuid, start_ms)
    group by all
    having length_ms > 0
),

units as (
    select gpu_uuid, any_value(node) as node, any_value(gpu_model) as gpu_model
    from intermediate.int_gpu_units
    group by gpu_uuid
),

owned as (
    select
        pieces.*,
        row_number() over () as piece,
        units.node,
        units.gpu_model,
        owners.run_key,
        owners.run_id,
        owners.team,
        owners.user_name,
        coalesce(owners.partition, '') as partition,
        coalesce(owners.qos, '') as qos
    from pieces
    left join units using (gpu_uuid)
    left join intermediate.int_job_run_owners as owners using (job_run_key)
),

priced as (
    select
        owned.piece,
        sum(
            (least(owned.end_ms, prices.to_ms) - greatest(owned.start_ms, prices.from_ms)) * prices.price_per_gpu_h::double
        ) / (owned.end_ms - owned.start_ms) as price_per_gpu_h
    from owned
    inner join intermediate.int_prices as prices
        on owned.cluster = prices.cluster
        and coalesce(owned.gpu_model, '') = prices.gpu_model
        and prices.mig_profile = ''
        and owned.partition = prices.partition
        and owned.qos = prices.qos
        and owned.start_ms < prices.to_ms
        and owned.end_ms > prices.from_ms
    group by owned.piece, owned.start_ms, owned.end_ms
    -- of time without a price the cost is not known
    having
        sum(least(owned.end_ms, prices.to_ms) - greatest(owned.start_ms, prices.from_ms))
        > 0.999 * (owned.end_ms - owned.start_ms)
),

powers as (
    select gpu_uuid, start_ms, arg_max(power_w.mean, samples) as power_w
    from intermediate.int_gpu_metrics
    where
        gpu_uuid in (select gpu_uuid from maps)
        and power_w.n > 0
        and hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
    group by gpu_uuid, start_ms
),

energies as (
    select
        owned.piece,
        sum(
            powers.power_w * (least(owned.end_ms, powers.start_ms + 600000) - greatest(owned.start_ms, powers.start_ms)) / 1000
        ) as energy_j,
        sum(least(owned.end_ms, powers.start_ms + 600000) - greatest(owned.start_ms, powers.start_ms)) as measured_ms,
        any_value(owned.end_ms - owned.start_ms) as whole_ms
    from owned
    inner join powers
        on owned.gpu_uuid = powers.gpu_uuid
        and powers.start_ms < owned.end_ms
        and powers.start_ms + 600000 > owned.start_ms
    group by owned.piece
)

select
    owned.cluster,
    owned.endpoint,
    any_value(owned.node) as node,
    owned.gpu_uuid,
    any_value(owned.gpu_model) as gpu_model,
    any_value(owned.method) as method,
    owned.job_run_key,
    any_value(owned.run_key) as run_key,
    any_value(owned.run_id) as run_id,
    any_value(owned.team) as team,
    any_value(owned.user_name) as user_name,
    any_value(owned.partition) as partition,
    min(owned.start_ms) as start_ms,
    max(owned.end_ms) as end_ms,
    (sum(owned.length_ms / owned.endpoints))::bigint as gpu_ms,
    case
        when count(priced.price_per_gpu_h) = count(*)
            then sum(owned.length_ms / owned.endpoints * priced.price_per_gpu_h) / 3600000
    end as cost,
    sum(energies.energy_j * owned.length_ms / energies.whole_ms / owned.endpoints) as energy_j,
    coalesce(sum(energies.measured_ms * owned.length_ms / energies.whole_ms / owned.endpoints), 0)::bigint as measured_ms
from owned
left join priced using (piece)
left join energies using (piece)
where of_teams(owned.team)
group by owned.cluster, owned.endpoint, owned.gpu_uuid, owned.job_run_key
