-- skip_if_empty: marts.serving_latencies
select
    cluster,
    engines.node,
    engines.gpu_uuid,
    engines.run_key,
    engine_name(endpoint, engine) as detail,
    engines.start_at,
    engines.end_at,
    'Confirmed' as confidence,
    engine_name(endpoint, engine) || ', ' || model || ': p99 of the ' || latency_name(latencies.metric) || ' is over '
        || printf('%.3g s', latencies.p99_low_s) || ', p50 at most ' || printf('%.3g s', latencies.p50_high_s)
        || ': at least ' || printf('%.0f', latencies.tail_low_ratio) || ' times, of '
        || counted(latencies.observations, case latencies.metric when 'inter_token_s' then 'token' else 'request' end)
        as evidence
from marts.serving_latencies as latencies
inner join marts.serving_engines as engines using (cluster, endpoint, engine, model)
where
    engines.role <> 'frontend'
    and latencies.level = 'engine'
    and latencies.method = 'histogram'
    and not latencies.is_cold
    and latencies.metric in ('ttft_s', 'inter_token_s', 'e2e_s')
    and latencies.observations >= threshold('serving_tail_observations')
    and latencies.tail_low_ratio >= threshold('serving_tail_ratio')
qualify row_number() over (
    partition by cluster, endpoint, engine, model order by latencies.tail_low_ratio desc, latencies.metric
) = 1
