-- What is wrong with the scope's serving engines, as findings: a full KV cache, replicas that share the load badly, latencies with a
-- long tail or that rise at times, engines without a request, queues beside idle replicas. Replicas are the engines of a model and a
-- role in a cluster.
-- grain: rule, cluster, node, gpu_uuid, run_key, detail, since_ms
-- access: team
-- evaluated: first
-- skip_if_empty: marts.serving_engines, marts.serving_intervals, marts.serving_latencies, marts.serving_spikes
-- detail: the engine, or the model and its role
-- until_ms: last reading in which it was so
-- gpu_ms, cost: of engines without a request; else null, since nobody knows what it cost
with engines as (
    select
        *,
        concat_ws(' ', endpoint, nullif(engine, '')) as name,
        concat_ws(' ', model, nullif(nullif(role, ''), 'both')) as replicas,
        running_requests + waiting_requests as load
    from marts.serving_engines
    where role <> 'frontend'
),

intervals as (
    select
        intervals.*,
        intervals.end_ms - intervals.start_ms as length_ms,
        intervals.end_ms // 60000 as minute
    from marts.serving_intervals as intervals
    where role <> 'frontend'
),

full_caches as (
    select
        cluster, endpoint, engine, model,
        min(start_ms) as since_ms,
        max(end_ms) as until_ms
    from intervals
    where kv_cache_ratio >= threshold('kv_full_ratio') and (requests_waiting > 0 or preemptions > 0)
    group by cluster, endpoint, engine, model
),

loads as (
    select
        cluster,
        model,
        role,
        any_value(replicas) as replicas,
        count(*) as engines,
        arg_max(name, load) as highest_name,
        arg_max(run_key, load) as run_key,
        max(load) as highest,
        (sum(load) - max(load)) / (count(*) - 1) as others,
        max(start_ms) as since_ms,
        min(end_ms) as until_ms
    from engines
    where load is not null
    group by cluster, model, role
    having count(*) > 1
),

tails as (
    select
        latencies.*,
        engines.name,
        engines.node,
        engines.gpu_uuid,
        engines.run_key,
        engines.start_ms,
        engines.end_ms
    from marts.serving_latencies as latencies
    inner join engines using (cluster, endpoint, engine, model)
    where
        latencies.level = 'engine'
        and latencies.method = 'histogram'
        and not latencies.is_cold
        and latencies.metric in ('ttft_s', 'inter_token_s', 'e2e_s')
        and latencies.observations >= threshold('serving_tail_observations')
        and latencies.tail_low_ratio >= threshold('serving_tail_ratio')
    qualify row_number() over (
        partition by latencies.cluster, latencies.endpoint, latencies.engine, latencies.model
        order by latencies.tail_low_ratio desc, latencies.metric
    ) = 1
),

-- the worst: one with a cause before one without
spikes as (
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
),

minutes as (
    select
        cluster, model, role, minute,
        max(start_ms) as start_ms,
        max(end_ms) as end_ms,
        arg_max(endpoint, requests_waiting) filter (where requests_waiting > 0) as waiting_at,
        max(requests_waiting) as waiting,
        min(endpoint) filter (where requests_running = 0 and requests_waiting = 0) as idle_at
    from intervals
    group by cluster, model, role, minute
    having count(distinct (endpoint, engine)) > 1
),

queues as (
    select
        cluster,
        model,
        role,
        count(*) as minutes,
        max(waiting) as waiting,
        arg_max(waiting_at, waiting) as waiting_at,
        arg_max(idle_at, waiting) as idle_at,
        min(start_ms) as since_ms,
        max(end_ms) as until_ms
    from minutes
    where waiting_at is not null and idle_at is not null
    group by cluster, model, role
)

select
    'kv_cache_full' as rule,
    engines.cluster,
    engines.node,
    engines.gpu_uuid,
    engines.run_key,
    engines.name as detail,
    found.since_ms,
    found.until_ms,
    null::bigint as gpu_ms,
    null::double as cost,
    'warning' as severity,
    'Confirmed' as confidence,
    engines.name || ', ' || engines.model || ': KV cache over ' || percent_text(threshold('kv_full_ratio')) || ' with requests waiting or preempted for '
        || printf('%.0f min', engines.kv_full_ms / 60000.0) || ', ' || percent_text(engines.kv_full_ms / engines.observed_ms)
        || ' of the time read' || coalesce('; ' || counted(nullif(engines.preemptions, 0)::bigint, 'preemption'), '') as evidence,
    engines.team
from engines
inner join full_caches as found using (cluster, endpoint, engine, model)
where engines.kv_full_ms >= threshold('serving_min_ms')
union all
select
    'replica_imbalance', cluster, null, null, run_key, replicas, since_ms, until_ms, null, null, 'warning', 'Confirmed',
    replicas || ': ' || highest_name || ' has ' || printf('%.1f', highest) || ' requests on average, the other '
        || counted(engines - 1, 'replica') || ' ' || printf('%.1f', others),
    null
from loads
where
    highest >= threshold('replica_imbalance_ratio') * others
    and highest - others >= threshold('replica_imbalance_requests')
    and until_ms - since_ms >= threshold('serving_min_ms')
union all
select
    'latency_tail', cluster, node, gpu_uuid, run_key, name, start_ms, end_ms, null, null, 'warning', 'Confirmed',
    name || ', ' || model || ': p99 of the ' || latency_name(metric) || ' is over ' || printf('%.3g s', p99_low_s) || ', p50 at most ' || printf('%.3g s', p50_high_s) || ': at least '
        || printf('%.0f', tail_low_ratio) || ' times, of ' || counted(observations, case metric when 'inter_token_s' then 'token' else 'request' end),
    null
from tails
union all
select
    'latency_spike', engines.cluster, engines.node, engines.gpu_uuid, engines.run_key, engines.name, spikes.since_ms, spikes.until_ms,
    null, null, 'warning', case when spikes.explained > 0 then 'Likely' else 'Not confirmed' end,
    engines.name || ', ' || engines.model || ': p95 of the ' || latency_name(spikes.worst.metric) || ' at least '
        || printf('%.3g s', spikes.worst.p95_s) || strftime(from_ms(spikes.worst.start_ms), ' from %H:%M')
        || strftime(from_ms(spikes.worst.end_ms), ' to %H:%M UTC') || ', usually at most ' || printf('%.3g s', spikes.worst.usual_p95_s)
        || '; ' || coalesce(spikes.worst.evidence, 'no event of its GPUs, host or links shows why')
        || case
            when spikes.spikes > 1
                then '; ' || counted(spikes.spikes, 'such time') || ', ' || spikes.explained || ' with a cause'
            else ''
        end,
    engines.team
from engines
inner join spikes using (cluster, endpoint, engine, model)
where spikes.explained > 0 or spikes.length_ms >= threshold('serving_min_ms')
union all
select
    'serving_standby', engines.cluster, engines.node, engines.gpu_uuid, engines.run_key, engines.name, engines.idle_from_ms, engines.idle_to_ms,
    (engines.idle_ms * engines.gpus)::bigint,
    engines.cost * engines.idle_ms * engines.gpus / nullif(engines.gpu_ms, 0),
    'warning', 'Confirmed',
    engines.name || ', ' || engines.model || ': no request running or waiting for ' || printf('%.1f h', engines.idle_ms / 3600000.0)
        || ', ' || percent_text(engines.idle_ms / engines.observed_ms) || ' of the time read',
    engines.team
from engines
where engines.idle_ms >= threshold('serving_standby_ms') and engines.gpus > 0
union all
select
    'queue_beside_idle', queues.cluster, null, null, null, concat_ws(' ', queues.model, nullif(nullif(queues.role, ''), 'both')),
    queues.since_ms, queues.until_ms, null, null, 'warning', 'Confirmed',
    concat_ws(' ', queues.model, nullif(nullif(queues.role, ''), 'both')) || ': in ' || counted(queues.minutes, 'minute')
        || ' requests waited at one replica (' || queues.waiting_at || ', up to ' || printf('%.0f', queues.waiting)
        || ') while another (' || queues.idle_at || ') had none',
    null
from queues
where 60000 * queues.minutes >= threshold('serving_min_ms')
