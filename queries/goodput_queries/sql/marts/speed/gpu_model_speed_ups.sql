-- Speed of a GPU of one model against one of another, on the site's own runs: workloads of the same name, parameters and
-- number of GPUs that ran on both.
-- grain: old_model, new_model
-- access: team
-- speed_up: median over workloads of usual speed on the new model / on the old one; lowest, highest: of these workloads
-- workloads, runs: number of workloads, and of runs on both models
with baselines as (
    select
        workload,
        params,
        gpu_models,
        gpus,
        speed_unit,
        median(usual_speed) as speed,
        sum(runs)::bigint as runs
    from marts.baselines
    where speed_unit <> 'steps' and gpu_models is not null and not contains(gpu_models, ', ')
    group by all
)

select
    old.gpu_models as old_model,
    new.gpu_models as new_model,
    median(new.speed / old.speed) as speed_up,
    min(new.speed / old.speed) as lowest_speed_up,
    max(new.speed / old.speed) as highest_speed_up,
    count(*) as workloads,
    sum(old.runs + new.runs)::bigint as runs
from baselines as old
inner join baselines as new
    on old.workload = new.workload
    and old.params is not distinct from new.params
    and old.gpus = new.gpus
    and old.speed_unit = new.speed_unit
    and old.gpu_models <> new.gpu_models
group by old.gpu_models, new.gpu_models
