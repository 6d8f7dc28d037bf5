-- skip_if_empty: marts.pipeline_replays
select
    replays.cluster,
    replays.run_key,
    from_ms(min(attempts.start_ms)) as start_at,
    case when bool_and(attempts.end_ms is not null) then from_ms(max(attempts.end_ms)) end as end_at,
    'Likely' as confidence,
    any_value(replays.sentence) as evidence
from marts.pipeline_replays as replays
inner join intermediate.int_attempts as attempts using (cluster, run_key)
where
    replays.cause is not null
    and in_window(attempts.start_ms, attempts.end_ms)
    and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
group by replays.cluster, replays.run_key
