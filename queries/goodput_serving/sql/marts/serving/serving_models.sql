-- Models that the scope's engines served in the window, in total and by role: tokens per second of all GPUs, of one GPU and of
-- one request, and what a million tokens cost in money and energy. Where prefill and decode run on engines of their own, input
-- tokens are those of prefill, output tokens those of decode; frontends count where no engine reports.
-- grain: cluster, model, role
-- access: team
-- evaluated: first
-- role: null: all roles
-- engines, gpus: number; null: no GPU is known. A GPU that served for a part of the time counts for that part of gpu_ms only
-- output_tokens_per_s: of all engines together: tokens from the first to the last reading; output_tokens_per_gpu_s: tokens / observed_gpu_ms
-- idle_ms: GPU time without a request running or waiting, the standby of the ledger; idle_cost: at the mean price of the GPUs
-- cost, energy_j: of all GPU time, model load and idle time included; null: not known of all engines
-- cost_per_m_tokens: a million of input and output tokens; joules_per_m_tokens
-- cost_per_m_input_tokens, cost_per_m_output_tokens: cost divided by role, on engines of both by the seconds that their requests
--  spent in prefill and in decode; they add up to the cost. Null: these are not reported
-- cost_per_request: the cost over the requests that ended, failed ones included
-- input_share_ratio: share of the cost that is put on input
-- reason: why cost or energy of tokens is not known
with counted as (
    select * from marts.serving_engine_tokens
),

-- prefill and decode both count a request, its input and its output
members as (
    select * exclude (role), role as of_role
    from counted
    union all
    select
        * exclude (role) replace (
            counted_input_tokens as input_tokens,
            counted_output_tokens as output_tokens,
            case when not is_earlier_part then requests_finished end as requests_finished,
            case when not is_earlier_part then requests_failed end as requests_failed
        ),
        null as of_role
    from counted
    where is_counted
),

sums as (
    select
        cluster,
        model,
        of_role as role,
        count(*) as engines,
        sum(columns([
            'gpus', 'input_tokens', 'output_tokens', 'requests_finished', 'requests_failed', 'preemptions',
            'kv_offload_bytes', 'kv_transfer_bytes'
        ])),
        min(start_ms) as start_ms,
        max(columns(['end_ms', 'kv_cache_max_ratio', 'waiting_max'])),
        case when count(gpu_ms) = count(*) then sum(gpu_ms)::bigint end as gpu_ms,
        case when count(observed_gpu_ms) = count(*) then sum(observed_gpu_ms)::bigint end as observed_gpu_ms,
        sum(kv_cache_ratio * observed_ms) / sum(observed_ms) filter (where kv_cache_ratio is not null) as kv_cache_ratio,
        sum(running_requests * observed_ms) / (max(end_ms) - min(start_ms)) as running_requests,
        sum(waiting_requests * observed_ms) / (max(end_ms) - min(start_ms)) as waiting_requests,
        sum(idle_ms * gpus)::bigint as idle_ms,
        case when count(cost) = count(*) then sum(cost * idle_ms * gpus / nullif(gpu_ms, 0)) end as idle_cost,
        case when count(cost) = count(*) then sum(cost) end as cost,
        case when count(energy_j) = count(*) then sum(energy_j) end as energy_j,
        case
            when count(cost) = count(*) and count(input_share_ratio) = count(*) then sum(cost * input_share_ratio)
        end as input_cost,
        case
            when count(energy_j) = count(*) and count(input_share_ratio) = count(*) then sum(energy_j * input_share_ratio)
        end as input_energy_j
    from members
    group by cluster, model, of_role
),

paces as (
    select
        cluster,
        model,
        of_role as role,
        sum(observations) / nullif(sum(sum_s), 0) as request_tokens_per_s
    from (
        select cluster, model, role as of_role, observations, sum_s
        from marts.serving_buckets
        where metric = 'inter_token_s' and isinf(le_s)
        union all
        select cluster, model, null, observations, sum_s
        from marts.serving_buckets
        where metric = 'inter_token_s' and isinf(le_s)
        qualify (role = 'frontend') = bool_or(role = 'frontend') over (partition by cluster, model)
    )
    group by cluster, model, of_role
),

known as (
    select
        *,
        coalesce(input_tokens, 0) + coalesce(output_tokens, 0) as tokens,
        -- of GPU time without readings the tokens are not known
        2 * observed_gpu_ms >= gpu_ms as is_observed
    from sums
)

select
    known.* exclude (start_ms, end_ms, input_cost, input_energy_j, tokens, is_observed),
    from_ms(known.start_ms) as start_at,
    from_ms(known.end_ms) as end_at,
    known.input_tokens / nullif(known.end_ms - known.start_ms, 0) * 1000 as input_tokens_per_s,
    known.output_tokens / nullif(known.end_ms - known.start_ms, 0) * 1000 as output_tokens_per_s,
    known.output_tokens / nullif(known.observed_gpu_ms, 0) * 1000 as output_tokens_per_gpu_s,
    paces.request_tokens_per_s,
    known.input_cost / nullif(known.cost, 0) as input_share_ratio,
    case when known.is_observed then per_million(known.cost, known.tokens) end as cost_per_m_tokens,
    case when known.is_observed then known.cost / nullif(known.requests_finished, 0) end as cost_per_request,
    case when known.is_observed then per_million(known.input_cost, known.input_tokens) end as cost_per_m_input_tokens,
    case when known.is_observed then per_million(known.cost - known.input_cost, known.output_tokens) end
        as cost_per_m_output_tokens,
    case when known.is_observed then per_million(known.energy_j, known.tokens) end as joules_per_m_tokens,
    case when known.is_observed then per_million(known.input_energy_j, known.input_tokens) end as joules_per_m_input_tokens,
    case when known.is_observed then per_million(known.energy_j - known.input_energy_j, known.output_tokens) end
        as joules_per_m_output_tokens,
    concat_ws(
        '; ',
        case when known.gpu_ms is null then 'the GPUs of an engine are not known' end,
        case when not known.is_observed then 'readings cover less than half of the GPU time' end,
        case when known.tokens = 0 then 'no token was counted' end,
        case when known.gpu_ms is not null and known.cost is null then 'the rate card has no price' end,
        case when known.gpu_ms is not null and known.energy_j is null then 'energy is measured for less than half of the time' end,
        case when known.cost is not null and known.input_cost is null then 'prefill and decode time is not reported' end
    ) as reason
from known
left join paces
    on known.cluster = paces.cluster and known.model = paces.model and known.role is not distinct from paces.role
