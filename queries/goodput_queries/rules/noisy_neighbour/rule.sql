-- skip_if_empty: intermediate.int_host_metrics
-- gpu_ms: what its steps took longer with the other job than without; of several such jobs the one that cost most
with bins as materialized (
    select
        attempt_key,
        start_ms // ten_minutes_ms() * ten_minutes_ms() as start_ms,
        avg(compute_ms / coalesce(tokens, samples, 1)) as level_ms,
        sum(compute_ms * gpus) as gpu_ms
    from marts.timed_steps
    where step_of_attempt >= threshold('step_warm_up')
    group by attempt_key, start_ms // ten_minutes_ms()
),

stays as materialized (
    select cluster, node, job_run_key, min(start_ms) as start_ms, max(coalesce(end_ms, forever_ms())) as end_ms
    from intermediate.int_holds
    where in_window(start_ms, end_ms)
    group by cluster, node, job_run_key
),

pairs as (
    select
        attempts.attempt_key, attempts.run_key, attempts.job_run_key, others.cluster, others.node, others.start_ms,
        others.end_ms, coalesce(nullif(owners.job_name, ''), owners.run_id) as other
    from (select distinct attempt_key from bins) as timed
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join stays as own using (job_run_key)
    inner join stays as others
        on own.cluster = others.cluster
        and own.node = others.node
        and own.job_run_key <> others.job_run_key
        and attempts.start_ms < others.end_ms
        and coalesce(attempts.end_ms, forever_ms()) > others.start_ms
    inner join intermediate.int_job_run_owners as owners on others.job_run_key = owners.job_run_key
    where owners.run_key <> attempts.run_key and of_teams(owners.team)
),

networks as (
    select cluster, node, hour_ms, max(line_rate_ratio) as network_ratio
    from intermediate.int_link_hours
    where node in (select node from pairs)
    group by cluster, node, hour_ms
),

-- ten minutes in which the other job came or went are of neither side
sides as (
    select
        pairs.*, bins.level_ms, bins.gpu_ms, hosts.cpu_busy_ratio, hosts.busy_disks, networks.network_ratio,
        bins.start_ms >= pairs.start_ms and bins.start_ms + ten_minutes_ms() <= pairs.end_ms as is_beside
    from pairs
    inner join bins using (attempt_key)
    inner join intermediate.int_host_bins as hosts
        on pairs.cluster = hosts.cluster and pairs.node = hosts.node and bins.start_ms = hosts.start_ms
    left join networks
        on pairs.cluster = networks.cluster
        and pairs.node = networks.node
        and bins.start_ms // one_hour_ms() * one_hour_ms() = networks.hour_ms
    where is_beside or bins.start_ms >= pairs.end_ms or bins.start_ms + ten_minutes_ms() <= pairs.start_ms
),

compared as (
    select
        attempt_key, run_key, job_run_key, cluster, node, other, start_ms, end_ms,
        count_if(is_beside) as bins_beside,
        count_if(not is_beside) as bins_alone,
        median(level_ms) filter (where is_beside) as beside_ms,
        median(level_ms) filter (where not is_beside) as alone_ms,
        sum(gpu_ms) filter (where is_beside) * (1 - alone_ms / beside_ms) as gpu_ms,
        median(cpu_busy_ratio) filter (where is_beside) as cpu,
        median(cpu_busy_ratio) filter (where not is_beside) as cpu_alone,
        median(busy_disks) filter (where is_beside) as disks,
        median(busy_disks) filter (where not is_beside) as disks_alone,
        median(network_ratio) filter (where is_beside) as network,
        median(network_ratio) filter (where not is_beside) as network_alone
    from sides
    group by attempt_key, run_key, job_run_key, cluster, node, other, start_ms, end_ms
    having
        bins_beside >= threshold('neighbour_min_bins')
        and bins_alone >= threshold('neighbour_min_bins')
        and beside_ms >= threshold('neighbour_step_ratio') * alone_ms
        and quantile_cont(level_ms, 0.25) filter (where is_beside)
        > quantile_cont(level_ms, 0.75) filter (where not is_beside)
),

explained as (
    select
        *,
        concat_ws(
            ', ',
            case
                when cpu - cpu_alone >= threshold('neighbour_cpu_rise')
                    then 'cores busy for ' || percent_text(cpu) || ', ' || percent_text(cpu_alone) || ' without'
            end,
            case
                when disks - disks_alone >= threshold('neighbour_disks_rise')
                    then printf('%.1f disks busy, %.1f without', disks, disks_alone)
            end,
            case
                when network - network_alone >= threshold('neighbour_network_rise')
                    then 'a port at ' || percent_text(network) || ' of its rate, ' || percent_text(network_alone)
                        || ' without'
            end
        ) as rises
    from compared
    where rises <> ''
)

select
    found.cluster,
    found.node,
    found.run_key,
    from_ms(scope_start(greatest(found.start_ms, attempts.start_ms))) as start_at,
    from_ms(nullif(least(found.end_ms, coalesce(attempts.end_ms, forever_ms())), forever_ms())) as end_at,
    found.gpu_ms::bigint as gpu_ms,
    found.gpu_ms / one_hour_ms() * prices.price_per_gpu_h as cost,
    'Likely' as confidence,
    printf(
        'steps took %.1f %% longer in %d ten-minute means beside job %s than in %d without it; on the node %s',
        100 * (found.beside_ms / found.alone_ms - 1), found.bins_beside, coalesce(found.other, ''), found.bins_alone,
        found.rises
    ) as evidence
from explained as found
inner join intermediate.int_attempts as attempts using (attempt_key)
left join intermediate.int_job_run_prices as prices on found.job_run_key = prices.job_run_key
where in_place(found.cluster, found.node, null, null)
qualify row_number() over (partition by found.attempt_key order by found.gpu_ms desc, found.node, found.other) = 1
