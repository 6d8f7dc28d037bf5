-- skip_if_empty: marts.serving_engines
select
    cluster,
    node,
    gpu_uuid,
    run_key,
    engine_name(endpoint, engine) as detail,
    from_ms(pause_from_ms) as start_at,
    from_ms(pause_to_ms) as end_at,
    (pause_ms * gpus)::bigint as gpu_ms,
    cost * pause_ms * gpus / nullif(gpu_ms, 0) as cost,
    'Confirmed' as confidence,
    engine_name(endpoint, engine) || ', ' || model || ': no request running or waiting for '
        || printf('%.1f h', pause_ms / one_hour_ms()) || ' in pauses of an hour or more; with shorter ones '
        || percent_text(idle_ms / observed_ms) || ' of the time read' as evidence,
    team
from marts.serving_engines as engines
where role <> 'frontend' and pause_ms > 0 and engines.gpus > 0
