-- skip_if_empty: intermediate.int_train_steps
-- gpu_ms: what its steps took longer in hours with losses; of several nodes that of the greatest difference
with counters as (
    select
        cluster, node, hour_ms, null as again_ratio,
        sum(coalesce(rx_errors.gain, 0) + coalesce(tx_errors.gain, 0) + coalesce(symbol_errors.gain, 0)
            + coalesce(rx_drops.gain, 0) + coalesce(tx_drops.gain, 0)) as errors
    from intermediate.int_link_hours
    group by cluster, node, hour_ms
    union all by name
    select cluster, node, hour_ms, max(tcp_retransmitted_segments.gain / nullif(tcp_sent_segments.gain, 0)) as again_ratio
    from intermediate.int_host_hours
    group by cluster, node, hour_ms
),

hours as (
    select
        cluster, node, hour_ms, sum(errors) as errors, max(again_ratio) as again_ratio,
        coalesce(sum(errors) > 0, false) or coalesce(max(again_ratio) >= threshold('lossy_retransmit_ratio'), false) as is_lossy
    from counters
    where hour_ms > scope_from_ms() - one_hour_ms() and hour_ms < scope_to_ms() and in_place(cluster, node, null, null)
    group by cluster, node, hour_ms
),

steps as (
    select
        attempt_key, start_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        avg(compute_ms / coalesce(tokens, samples, 1)) as level_ms, sum(compute_ms * gpus) as gpu_ms
    from marts.timed_steps
    where step_of_attempt >= threshold('step_warm_up')
    group by all
),

compared as (
    select
        attempt_key, attempts.cluster, places.node, attempts.run_key,
        min(hour_ms) filter (where is_lossy) as first_ms,
        max(hour_ms) filter (where is_lossy) + one_hour_ms() as last_ms,
        count_if(is_lossy) as lossy,
        count(*) - lossy as clean,
        median(level_ms) filter (where is_lossy) / median(level_ms) filter (where not is_lossy) as longer,
        sum(gpu_ms) filter (where is_lossy) * (1 - 1 / longer) as gpu_ms,
        nullif(sum(errors) filter (where is_lossy), 0)::bigint || ' errors and drops of its ports' as of_ports,
        printf('up to %.1f %% of its TCP segments sent again', 100 * nullif(max(again_ratio), 0)) as of_host
    from steps
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join (select distinct job_run_key, node from intermediate.int_holds) as places using (job_run_key)
    inner join hours using (cluster, node, hour_ms)
    group by attempt_key, attempts.cluster, places.node, attempts.run_key
    having
        least(lossy, clean) >= threshold('lossy_min_hours')
        and longer >= threshold('neighbour_step_ratio')
        and min(level_ms) filter (where is_lossy) > max(level_ms) filter (where not is_lossy)
)

select
    cluster, node, run_key, from_ms(first_ms) as start_at, from_ms(last_ms) as end_at, gpu_ms::bigint as gpu_ms,
    'Likely' as confidence,
    printf('steps took %.1f %% longer in %d hours with losses than in %d without: ', 100 * (longer - 1), lossy, clean)
    || concat_ws(', ', of_ports, of_host) as evidence
from compared
qualify row_number() over (partition by attempt_key order by gpu_ms desc, node) = 1
