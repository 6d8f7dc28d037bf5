-- Tokens that serving engines counted in the scope's window, by account, for the cost and energy of all time of their GPUs. An
-- endpoint counts where all of its GPUs were held by one account, all the time that it had them.
-- grain: cluster, team
-- access: team
-- engines: number; a model of an engine with several counts as one
-- input_tokens, output_tokens: of prompts and generated; null: not counted
-- cost_per_m_tokens, joules_per_m_tokens: for a million of both; null: not known of all engines, or readings cover less than half
--  of the GPU time. Of input and of output alone: as in marts.serving_models
with owners as (
    select cluster, endpoint, any_value(team) as team
    from marts.serving_gpus
    group by cluster, endpoint
    having count(job_run_key) = count(*) and count(distinct coalesce(team, '')) = 1
),

sums as (
    select
        engines.cluster,
        owners.team,
        count(*) as engines,
        sum(engines.counted_input_tokens) as input_tokens,
        sum(engines.counted_output_tokens) as output_tokens,
        2 * sum(engines.observed_gpu_ms) >= sum(engines.gpu_ms) as is_observed,
        case when count(engines.cost) = count(*) then sum(engines.cost) end as cost,
        case when count(engines.energy_j) = count(*) then sum(engines.energy_j) end as energy_j,
        count(engines.input_share_ratio) = count(*) as has_shares,
        sum(engines.cost * engines.input_share_ratio) as input_cost,
        sum(engines.energy_j * engines.input_share_ratio) as input_energy_j
    from marts.serving_engine_tokens as engines
    inner join owners using (cluster, endpoint)
    where engines.is_counted
    group by engines.cluster, owners.team
    having count(coalesce(engines.counted_input_tokens, engines.counted_output_tokens)) > 0
),

known as (
    select
        *,
        coalesce(input_tokens, 0) + coalesce(output_tokens, 0) as tokens,
        case when is_observed then cost end as known_cost,
        case when is_observed then energy_j end as known_energy_j,
        case when is_observed and has_shares and cost is not null then input_cost end as known_input_cost,
        case when is_observed and has_shares and energy_j is not null then input_energy_j end as known_input_energy_j
    from sums
)

select
    cluster,
    team,
    engines,
    input_tokens::bigint as input_tokens,
    output_tokens::bigint as output_tokens,
    per_million(known_cost, tokens) as cost_per_m_tokens,
    per_million(known_input_cost, input_tokens) as cost_per_m_input_tokens,
    per_million(known_cost - known_input_cost, output_tokens) as cost_per_m_output_tokens,
    per_million(known_energy_j, tokens) as joules_per_m_tokens,
    per_million(known_input_energy_j, input_tokens) as joules_per_m_input_tokens,
    per_million(known_energy_j - known_input_energy_j, output_tokens) as joules_per_m_output_tokens
from known
