-- Facts of the scope's window that two instruments report differently, by more than they can be off, with both figures.
-- Clocks, and GPUs that only one of two sources knows, are in marts.data_quality.
-- grain: fact, cluster, subject
-- fact: outcome (scheduler and job), energy of a GPU (its counter and its power readings), energy of a node (its meter and
--  the counters of its GPUs)
-- subject: the attempt, GPU or node; said: both figures
with outcomes as (
    select
        attempts.cluster,
        attempts.attempt_key as subject,
        'the scheduler has ' || attempts.state || ', the job reports ' || failures.kind || ' at '
        || strftime(from_ms(failures.at_ms), '%Y-%m-%d %H:%M:%S') as said
    from intermediate.int_attempts as attempts
    inner join intermediate.int_reported_failures as failures using (attempt_key)
    where
        attempts.outcome = 'ok'
        and attempts.state = 'COMPLETED'
        and failures.kind is distinct from 'preempted'
        and in_window(attempts.start_ms, attempts.end_ms)
),

-- a counter's gain is from the first to the last of its samples in the ten minutes
bins as not materialized (
    select
        gpu_uuid,
        hour_ms,
        source,
        energy_j.n as n,
        energy_j.gain as counter_j,
        power_w.mean * 600 * (energy_j.n - 1) / energy_j.n as power_j
    from intermediate.int_gpu_metrics
    where
        gpu_instance = ''
        and energy_j.n >= 5
        and power_w.n >= 5
        and start_ms >= scope_from_ms()
        and start_ms < scope_to_ms()
),

-- of ten minutes with as many readings as most have: others were not read from begin to end
gpus as (
    select gpu_uuid, source, sum(counter_j) as counter_j, sum(power_j) as power_j
    from (
        select gpu_uuid, source, n, sum(counter_j) as counter_j, sum(power_j) as power_j, count(*) as bins
        from bins
        group by gpu_uuid, source, n
        qualify n >= 0.9 * first_value(n) over (partition by gpu_uuid, source order by count(*) desc, n)
    )
    group by gpu_uuid, source
    -- an hour, and a tenth: readings are momentary
    having sum(bins) >= 6 and abs(sum(counter_j) - sum(power_j)) > 0.1 * sum(power_j)
),

places as (
    select gpu_uuid, any_value(cluster) as cluster, any_value(node) as node
    from intermediate.int_gpu_units
    group by gpu_uuid
),

counters as (
    select
        places.cluster,
        gpus.gpu_uuid as subject,
        printf(
            'its counter has %.3f kWh, its power readings %.3f kWh',
            gpus.counter_j / one_hour_ms(), gpus.power_j / one_hour_ms()
        ) as said
    from gpus
    inner join places using (gpu_uuid)
),

meters as (
    select
        meters.cluster,
        meters.node as subject,
        printf(
            'its meter has %.3f kWh, the counters of its GPUs %.3f kWh',
            sum(meters.energy_mj) / 3600000000, sum(of_gpus.counter_j) / one_hour_ms()
        ) as said
    from intermediate.int_node_energy as meters
    inner join (
        select places.cluster, places.node, bins.hour_ms, sum(bins.counter_j) as counter_j
        from bins
        inner join places using (gpu_uuid)
        semi join intermediate.int_node_energy using (cluster, node)
        group by all
    ) as of_gpus using (cluster, node, hour_ms)
    where meters.end_ms - meters.start_ms = one_hour_ms()
    group by meters.cluster, meters.node
    -- a server draws more than its GPUs; meters are good to 2 %
    having sum(of_gpus.counter_j) * 1000 > 1.02 * sum(meters.energy_mj)
),

found as (
    select 'outcome' as fact, cluster, subject, said from outcomes
    union all
    select 'energy of a GPU', cluster, subject, said from counters
    union all
    select 'energy of a node', cluster, subject, said from meters
)

select *
from found
where in_cluster(cluster)
