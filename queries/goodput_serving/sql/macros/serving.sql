-- The number in the ledger's layer of what an engine did; serving_category() of the core is its inverse.
create or replace macro serving_number(of_category) as (
    list_position(
        ['startup', 'idle_held', 'productive', 'at_risk', 'lost_work', 'step_unsplit'], of_category
    )
);

-- The share of a number of observations; null where there is none.
create or replace macro share_within(part, whole) as (case when whole > 0 then least(1, part / whole) end);

-- An amount for a million tokens; null where there are none.
create or replace macro per_million(amount, tokens) as (amount / nullif(tokens, 0) * 1e6);

-- What a latency is, inside a sentence.
create or replace macro latency_name(metric) as (
    case metric when 'ttft_s' then 'time to the first token' when 'e2e_s' then 'time of a request' else 'time between tokens' end
);

-- A serving engine, and the replicas of a model with one role.
create or replace macro engine_name(endpoint, engine) as (concat_ws(' engine ', endpoint, nullif(engine, '')));
create or replace macro replicas_name(model, role) as (concat_ws(' ', model, nullif(nullif(role, ''), 'both')));
