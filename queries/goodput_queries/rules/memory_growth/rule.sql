-- skip_if_empty: marts.memory_growth
select
    attempts.cluster,
    growth.node,
    growth.gpu_uuid,
    growth.run_key,
    growth.last_at - to_milliseconds(growth.windows * ten_minutes_ms()) as start_at,
    growth.last_at as end_at,
    case when growth.windows >= threshold('memory_growth_windows') then 'Likely' else 'Not confirmed' end as confidence,
    format('used memory grows by {:.2f} GB an hour', growth.growth_bytes_per_h / 1e9)
        || coalesce(format(', full in {:.1f} h', growth.time_to_full_s / 3600), '') as evidence
from marts.memory_growth as growth
inner join intermediate.int_attempts as attempts using (attempt_key)
