-- Latency spikes of the scope's serving engines with what may have caused them.
-- grain: cluster, endpoint, engine, model, start_ms
-- access: team
-- skip_if_empty: marts.serving_slow_times
-- start_ms, end_ms, metric, method, observations, p95_s, usual_p95_s: see marts.serving_slow_times
-- cause: the first of marts.serving_spike_causes; null: nothing that is measured shows one
-- evidence: of all of them
-- node, gpu_uuid, run_id, run_key, team: of the engine
with causes as (
    select
        cluster, endpoint, engine, model, start_ms,
        arg_min(cause, (place, cause)) as cause,
        min(place) as place,
        string_agg(evidence, '; ' order by place, cause) as evidence
    from marts.serving_spike_causes
    group by cluster, endpoint, engine, model, start_ms
),

gpus as (
    select cluster, endpoint, engine, min(gpu_uuid) as gpu_uuid
    from marts.serving_gpus
    group by cluster, endpoint, engine
)

select
    times.*,
    from_ms(times.start_ms) as start_at,
    from_ms(times.end_ms) as end_at,
    times.p95_s / nullif(times.usual_p95_s, 0) as rise_ratio,
    causes.cause,
    causes.place,
    causes.evidence,
    endpoints.node,
    gpus.gpu_uuid,
    endpoints.run_id,
    endpoints.run_key,
    endpoints.team
from marts.serving_slow_times as times
inner join marts.serving_endpoints as endpoints using (cluster, endpoint)
left join gpus using (cluster, endpoint, engine)
left join causes using (cluster, endpoint, engine, model, start_ms)
