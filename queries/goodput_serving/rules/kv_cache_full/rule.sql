-- skip_if_empty: marts.serving_intervals
with found as (
    select
        cluster, endpoint, engine, model,
        min(start_ms) as since_ms,
        max(end_ms) as until_ms
    from marts.serving_intervals
    where kv_cache_ratio >= threshold('kv_full_ratio') and (requests_waiting > 0 or preemptions > 0)
    group by cluster, endpoint, engine, model
)

select
    engines.cluster,
    engines.node,
    engines.gpu_uuid,
    engines.run_key,
    engine_name(endpoint, engine) as detail,
    from_ms(found.since_ms) as start_at,
    from_ms(found.until_ms) as end_at,
    'Confirmed' as confidence,
    engine_name(endpoint, engine) || ', ' || model || ': KV cache over ' || percent_text(threshold('kv_full_ratio'))
        || ' with requests waiting or preempted for ' || printf('%.0f min', engines.kv_full_ms / 60000.0) || ', '
        || percent_text(engines.kv_full_ms / engines.observed_ms) || ' of the time read'
        || coalesce('; ' || counted(nullif(engines.preemptions, 0)::bigint, 'preemption'), '') as evidence,
    engines.team
from marts.serving_engines as engines
inner join found using (cluster, endpoint, engine, model)
where engines.role <> 'frontend' and engines.kv_full_ms >= threshold('serving_min_ms')
