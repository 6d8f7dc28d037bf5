-- The scope's serving engines in the window: what each of them did, with what GPUs, at what cost. The GPUs of an engine
-- count for its models in proportion to their tokens.
-- grain: cluster, endpoint, engine, model
-- access: team
-- skip_if_empty: marts.serving_endpoints
-- role: prefill, decode, frontend, both; '': the metrics do not say
-- start_at, end_at: first and last reading; observed_ms: between them, without gaps of over an hour
-- gpus: number of GPUs, a shared one by its part; null: not known. gpu_uuid: of one of them
-- gpu_ms: GPU time in the window; observed_gpu_ms: of it that with readings
-- input_tokens, output_tokens, requests_finished, requests_failed, preemptions: counted
-- output_tokens_per_s: per second of the engine; output_tokens_per_gpu_s: and GPU
-- running_requests, waiting_requests: mean; running_max, waiting_max: highest reading
-- kv_cache_ratio: mean use; kv_cache_max_ratio: highest reading; kv_full_ratio: share of time over threshold kv_full_ratio
-- kv_full_ms: such time, of readings in which requests waited or were preempted
-- prefix_hit_ratio: of the prompt tokens that were looked up
-- transfer_ratio: KV transfer time / time of all requests; copy_ratio: time of copies from host to GPU / the same. Transfers that
--  overlap with others or with work count as well: an upper bound of what they add to latency
-- idle_ms: time without a request running or waiting, the standby of the ledger
-- pause_ms: of it in pauses over threshold serving_standby_ms; pause_from_ms, pause_to_ms: begin of the first and end of the last
-- cost, energy_j: of gpu_ms; null: not known
with intervals as (
    select *, end_ms - start_ms as length_ms from marts.serving_intervals
),

sums as (
    select
        cluster,
        endpoint,
        engine,
        model,
        max(product) as product,
        max(role) as role,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        sum(length_ms)::bigint as observed_ms,
        sum(columns([
            'input_tokens', 'output_tokens', 'requests_finished', 'requests_failed', 'preemptions', 'kv_offload_bytes',
            'kv_transfer_bytes', 'kv_transfer_s', 'kv_load_s'
        ])),
        sum(requests_running * length_ms) / sum(length_ms) filter (where requests_running is not null) as running_requests,
        max(requests_running) as running_max,
        sum(requests_waiting * length_ms) / sum(length_ms) filter (where requests_waiting is not null) as waiting_requests,
        max(requests_waiting) as waiting_max,
        sum(kv_cache_ratio * length_ms) / sum(length_ms) filter (where kv_cache_ratio is not null) as kv_cache_ratio,
        max(kv_cache_ratio) as kv_cache_max_ratio,
        sum(case when kv_cache_ratio >= threshold('kv_full_ratio') then length_ms else 0 end)
            / sum(length_ms) filter (where kv_cache_ratio is not null) as kv_full_ratio,
        coalesce(
            sum(length_ms) filter (
                where kv_cache_ratio >= threshold('kv_full_ratio') and (requests_waiting > 0 or preemptions > 0)
            ),
            0
        )::bigint as kv_full_ms,
        sum(prefix_cache_hits) / nullif(sum(prefix_cache_queries), 0) as prefix_hit_ratio,
        case
            when count(requests_waiting) > 0
                then coalesce(sum(length_ms) filter (where requests_waiting > 0), 0)
        end::bigint as queue_ms
    from intervals
    group by cluster, endpoint, engine, model
),

-- as the ledger has it, where no job event says otherwise; it cuts pauses at hours
standby as (
    select
        cluster,
        endpoint,
        engine,
        scope_start(start_ms) as start_ms,
        scope_end(end_ms) as end_ms,
        start_ms is distinct from lag(end_ms) over (partition by cluster, endpoint, engine order by start_ms) as is_new
    from intermediate.int_serving_timeline
    where phase = 'standby' and in_window(start_ms, end_ms)
),

pauses as (
    select
        cluster,
        endpoint,
        engine,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        max(end_ms) - min(start_ms) as length_ms,
        length_ms >= threshold('serving_standby_ms') as is_long
    from (
        select *, count_if(is_new) over (partition by cluster, endpoint, engine order by start_ms) as pause from standby
    )
    group by cluster, endpoint, engine, pause
),

states as (
    select
        cluster,
        endpoint,
        engine,
        sum(length_ms)::bigint as idle_ms,
        coalesce(sum(length_ms) filter (where is_long), 0)::bigint as pause_ms,
        min(start_ms) filter (where is_long) as pause_from_ms,
        max(end_ms) filter (where is_long) as pause_to_ms
    from pauses
    group by cluster, endpoint, engine
),

-- GPUs of an engine with several models count for them in proportion to their tokens
weights as (
    select
        cluster,
        endpoint,
        engine,
        model,
        coalesce(
            (coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) / nullif(
                sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) over (partition by cluster, endpoint, engine), 0
            ),
            1 / count(*) over (partition by cluster, endpoint, engine)
        ) as weight
    from sums
),

gpus as (
    select
        cluster,
        endpoint,
        engine,
        sum(part) as gpus,
        min(gpu_uuid) as gpu_uuid,
        any_value(gpu_model) as gpu_model,
        any_value(method) as gpu_method,
        sum(gpu_ms) as gpu_ms,
        case when count(cost) = count(*) then sum(cost) end as cost,
        case when 2 * sum(measured_ms) >= sum(gpu_ms) then sum(energy_j) * sum(gpu_ms) / nullif(sum(measured_ms), 0) end
            as energy_j
    from (
        select *, max(gpu_ms / (end_ms - start_ms)) over of_gpu / count(*) over of_gpu as part
        from marts.serving_gpus
        window
            of_gpu as (partition by cluster, endpoint, engine, gpu_uuid, gpu_instance),
            of_engine as (partition by cluster, endpoint, engine)
        -- of several GPUs and engines that do not come out even nobody says how many an engine has
        qualify
            method = 'label'
            or max(engines) over of_engine = 1
            or count(distinct (gpu_uuid, gpu_instance)) over of_engine = 1
    )
    group by cluster, endpoint, engine
),

latencies as (
    select
        cluster,
        endpoint,
        engine,
        model,
        sum(sum_s) filter (where metric = 'inter_token_s')
            / nullif(sum(observations) filter (where metric = 'inter_token_s'), 0) as inter_token_s,
        sum(sum_s) filter (where metric = 'e2e_s') as requests_s,
        sum(sum_s) filter (where metric = 'prefill_s') as prefill_s,
        sum(sum_s) filter (where metric = 'decode_s') as decode_s
    from marts.serving_buckets
    where isinf(le_s)
    group by cluster, endpoint, engine, model
)

select
    sums.*,
    endpoints.* exclude (cluster, endpoint, role, product, namespace, gpus),
    gpus.gpus * weights.weight as gpus,
    gpus.gpu_uuid,
    gpus.gpu_model,
    gpus.gpu_method,
    from_ms(sums.start_ms) as start_at,
    from_ms(sums.end_ms) as end_at,
    (gpus.gpu_ms * weights.weight)::bigint as gpu_ms,
    (gpus.gpus * weights.weight * sums.observed_ms)::bigint as observed_gpu_ms,
    sums.input_tokens / nullif(sums.observed_ms, 0) * 1000 as input_tokens_per_s,
    sums.output_tokens / nullif(sums.observed_ms, 0) * 1000 as output_tokens_per_s,
    sums.output_tokens / nullif(gpus.gpus * weights.weight * sums.observed_ms, 0) * 1000 as output_tokens_per_gpu_s,
    1 / nullif(latencies.inter_token_s, 0) as request_tokens_per_s,
    sums.kv_transfer_s / nullif(latencies.requests_s, 0) as transfer_ratio,
    sums.kv_load_s / nullif(latencies.requests_s, 0) as copy_ratio,
    latencies.prefill_s,
    latencies.decode_s,
    coalesce(states.idle_ms, 0) as idle_ms,
    coalesce(states.pause_ms, 0) as pause_ms,
    states.pause_from_ms,
    states.pause_to_ms,
    gpus.cost * weights.weight as cost,
    gpus.energy_j * weights.weight as energy_j
from sums
inner join marts.serving_endpoints as endpoints using (cluster, endpoint)
inner join weights using (cluster, endpoint, engine, model)
left join gpus using (cluster, endpoint, engine)
left join states using (cluster, endpoint, engine)
left join latencies using (cluster, endpoint, engine, model)
