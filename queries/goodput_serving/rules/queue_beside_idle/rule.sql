-- skip_if_empty: marts.serving_intervals
with minutes as (
    select
        cluster, model, role, end_ms // 60000 as minute,
        max(start_ms) as start_ms,
        max(end_ms) as end_ms,
        arg_max(endpoint, requests_waiting) filter (where requests_waiting > 0) as waiting_at,
        max(requests_waiting) as waiting,
        min(endpoint) filter (where requests_running = 0 and requests_waiting = 0) as idle_at
    from marts.serving_intervals
    where role <> 'frontend'
    group by cluster, model, role, minute
    having count(distinct (endpoint, engine)) > 1
)

select
    cluster,
    replicas_name(model, role) as detail,
    from_ms(min(start_ms)) as start_at,
    from_ms(max(end_ms)) as end_at,
    'Confirmed' as confidence,
    replicas_name(model, role) || ': in ' || counted(count(*), 'minute') || ' requests waited at one replica ('
        || arg_max(waiting_at, waiting) || ', up to ' || printf('%.0f', max(waiting)) || ') while another ('
        || arg_max(idle_at, waiting) || ') had none' as evidence
from minutes
where waiting_at is not null and idle_at is not null
group by cluster, model, role
having 60000 * count(*) >= threshold('serving_min_ms')
