-- skip_if_empty: marts.serving_spikes
-- the worst: one with a cause before one without
with spikes as (
    select
        cluster, endpoint, engine, model,
        min(start_ms) as since_ms,
        max(end_ms) as until_ms,
        sum(end_ms - start_ms) as length_ms,
        count(*) as spikes,
        count(cause) as explained,
        arg_max(
            {
                metric: metric, start_ms: start_ms, end_ms: end_ms, p95_s: p95_s, usual_p95_s: usual_p95_s, evidence: evidence
            },
            (coalesce(-place, -99), rise_ratio)
        ) as worst
    from marts.serving_spikes
    group by cluster, endpoint, engine, model
)

select
    engines.cluster,
    engines.node,
    engines.gpu_uuid,
    engines.run_key,
    engine_name(endpoint, engine) as detail,
    from_ms(spikes.since_ms) as start_at,
    from_ms(spikes.until_ms) as end_at,
    case when spikes.explained > 0 then 'Likely' else 'Not confirmed' end as confidence,
    engine_name(endpoint, engine) || ', ' || model || ': p95 of the ' || latency_name(spikes.worst.metric) || ' at least '
        || printf('%.3g s', spikes.worst.p95_s) || strftime(from_ms(spikes.worst.start_ms), ' from %H:%M')
        || strftime(from_ms(spikes.worst.end_ms), ' to %H:%M UTC') || ', usually at most '
        || printf('%.3g s', spikes.worst.usual_p95_s) || '; '
        || coalesce(spikes.worst.evidence, 'no event of its GPUs, host or links shows why')
        || case
            when spikes.spikes > 1 then '; ' || counted(spikes.spikes, 'such time') || ', ' || spikes.explained || ' with a cause'
            else ''
        end as evidence,
    engines.team
from marts.serving_engines as engines
inner join spikes using (cluster, endpoint, engine, model)
where engines.role <> 'frontend' and (spikes.explained > 0 or spikes.length_ms >= threshold('serving_min_ms'))
