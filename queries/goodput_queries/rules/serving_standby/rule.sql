-- skip_if_empty: marts.serving_engines
select
    cluster,
    node,
    gpu_uuid,
    run_key,
    engine_name(endpoint, engine) as detail,
    from_ms(idle_from_ms) as start_at,
    from_ms(idle_to_ms) as end_at,
    (idle_ms * gpus)::bigint as gpu_ms,
    cost * idle_ms * gpus / nullif(gpu_ms, 0) as cost,
    'ticket' as severity,
    'Confirmed' as confidence,
    engine_name(endpoint, engine) || ', ' || model || ': no request running or waiting for '
        || printf('%.1f h', idle_ms / one_hour_ms()) || ', ' || percent_text(idle_ms / observed_ms) || ' of the time read'
        as evidence,
    team
from marts.serving_engines as engines
where role <> 'frontend' and idle_ms >= threshold('serving_standby_ms') and engines.gpus > 0
