-- GPUs of serving engines in the scope's window, with the job run that held them, their cost and energy. An engine that shares
-- a GPU with others has an equal part of it.
-- grain: cluster, endpoint, engine, gpu_uuid, gpu_instance, start_ms
-- access: team
-- skip_if_empty: intermediate.int_serving_gpus
-- method: how the GPU is known; see intermediate.int_serving_gpus
-- job_run_key, run_key, run_id, team, user_name, partition: of who held it; null: no job run
-- start_ms, end_ms: cut at the window
-- engines: that share it
-- energy_j: mean power of ten minutes x gpu_ms, of the time with readings; measured_ms: of gpu_ms, with a power reading
with maps as (
    select
        maps.* exclude (is_in_order, start_ms, end_ms, ready_ms),
        scope_start(maps.start_ms) as start_ms,
        scope_end(maps.end_ms) as end_ms
    from intermediate.int_serving_gpus as maps
    where in_window(maps.start_ms, maps.end_ms) and maps.end_ms > maps.start_ms
),

units as (
    select
        gpu_uuid,
        gpu_instance,
        any_value(gpu_model) as gpu_model,
        any_value(coalesce(mig_profile, '')) as mig_profile,
        any_value((share_hi - share_lo) / share_of) as share_ratio
    from intermediate.int_gpu_units
    group by gpu_uuid, gpu_instance
),

owned as (
    select
        maps.*,
        row_number() over () as piece,
        (
            select count(distinct (others.cluster, others.endpoint, others.engine))
            from maps as others
            where
                others.gpu_uuid = maps.gpu_uuid
                and others.gpu_instance = maps.gpu_instance
                and others.start_ms < maps.end_ms
                and others.end_ms > maps.start_ms
        ) as engines,
        units.gpu_model,
        units.mig_profile,
        units.share_ratio,
        owners.* exclude (job_run_key, cluster, job_id, job_name, state)
    from maps
    left join units using (gpu_uuid, gpu_instance)
    left join intermediate.int_job_run_owners as owners using (job_run_key)
),

priced as (
    select
        owned.piece,
        mean_price(
            sum(
                overlap_ms(owned.start_ms, owned.end_ms, prices.from_ms, prices.to_ms) * prices.price_per_gpu_h::double
            ),
            sum(overlap_ms(owned.start_ms, owned.end_ms, prices.from_ms, prices.to_ms)),
            any_value(owned.end_ms - owned.start_ms)
        ) as price_per_gpu_h
    from owned
    inner join intermediate.int_prices as prices on is_price_of(
        prices, owned.cluster, owned.gpu_model, owned.mig_profile, owned.partition, owned.qos,
        owned.start_ms, owned.end_ms
    )
    group by owned.piece
),

-- power is that of the device, which its instances repeat
powers as (
    select gpu_uuid, start_ms, arg_max(power_w.mean, samples) as power_w
    from intermediate.int_gpu_metrics
    where
        gpu_uuid in (select gpu_uuid from maps)
        and power_w.n > 0
        and hour_ms > scope_from_ms() - one_hour_ms()
        and hour_ms < scope_to_ms()
    group by gpu_uuid, start_ms
),

energies as (
    select
        owned.piece,
        sum(
            powers.power_w * (least(owned.end_ms, powers.start_ms + ten_minutes_ms()) - greatest(owned.start_ms, powers.start_ms)) / 1000
        ) as energy_j,
        sum(least(owned.end_ms, powers.start_ms + ten_minutes_ms()) - greatest(owned.start_ms, powers.start_ms)) as measured_ms
    from owned
    inner join powers
        on owned.gpu_uuid = powers.gpu_uuid
        and powers.start_ms < owned.end_ms
        and powers.start_ms + ten_minutes_ms() > owned.start_ms
    group by owned.piece
)

select
    owned.* exclude (piece, mig_profile, share_ratio, qos),
    ((owned.end_ms - owned.start_ms) * owned.share_ratio / owned.engines)::bigint as gpu_ms,
    (owned.end_ms - owned.start_ms) * owned.share_ratio / owned.engines * priced.price_per_gpu_h / one_hour_ms() as cost,
    energies.energy_j * owned.share_ratio / owned.engines as energy_j,
    coalesce(energies.measured_ms * owned.share_ratio / owned.engines, 0)::bigint as measured_ms
from owned
left join priced using (piece)
left join energies using (piece)
where of_teams(owned.team) and in_cluster(owned.cluster)
