-- What serving telemetry says of a unit, as a number of the ledger's layer; 0: nothing. 1 the model loads, 2 no request
-- runs or waits, 3 requests within the objective, 4 within it or not, 5 not within it, 6 requests without an objective.
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
