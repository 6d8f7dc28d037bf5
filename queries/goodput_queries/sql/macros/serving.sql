-- What serving telemetry says of a unit, as a number of the ledger's layer; 0: nothing. 1 the model loads, 2 no request
-- runs or waits, 3 requests within the objective, 4 within it or not, 5 not within it, 6 requests without an objective.
create or replace macro serving_number(of_category) as (
    list_position(
        ['startup', 'idle_held', 'productive', 'at_risk', 'lost_work', 'step_unsplit'], of_category
    )
);
create or replace macro serving_category(number) as (
    ['startup', 'idle_held', 'productive', 'at_risk', 'lost_work', 'step_unsplit'][number]
);
create or replace macro serving_phase(number) as (
    ['model_load', 'standby', 'serving', 'objective_unknown', 'slo_miss', 'serving'][number]
);

-- Whether serving telemetry classified a stretch of the ledger.
create or replace macro is_serving(phase) as (
    coalesce(phase in ('model_load', 'standby', 'serving', 'objective_unknown', 'slo_miss'), false)
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
