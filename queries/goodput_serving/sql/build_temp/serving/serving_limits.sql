-- Models with a serving objective, with its limits: of the objectives whose pattern matches the first.
-- grain: model
-- ttft_s, inter_token_s, e2e_s: null: not asked
select models.model, objectives.ttft_s, objectives.inter_token_s, objectives.e2e_s
from (select distinct model from staging.stg_serving_endpoints) as models
inner join state.serving_objectives as objectives on models.model glob objectives.model
qualify objectives.place = min(objectives.place) over (partition by models.model)
