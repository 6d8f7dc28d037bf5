-- Baselines: the best and the usual speed of each workload in the scope's window, how its runs vary, and its last run
-- against the others. Runs that are not comparable (marts.workload_runs) are counted and left out.
-- grain: cluster, workload, params, gpu_models, gpus, speed_unit
-- evaluated: first
-- access: team
-- runs: comparable ones; left_out_runs: others; steps: of the comparable ones
-- best_speed, best_run_key: of the fastest run; usual_speed: median of runs
-- usual_comm_ratio: exposed communication of the retained steps that measure it, median of the runs that measure it; null: none does
-- run_variation_ratio: standard deviation / mean of the runs' speeds; null: fewer than two
-- step_variation_ratio: the same of the step times of a run, median of runs
-- last_run_key, last_run_id, last_at: the run that ended last; last_change_ratio: its speed over the median of the others,
--  less 1; null: it is alone
with runs as (
    select * from marts.workload_runs
),

comparable as (
    select
        *,
        row_number() over (
            partition by cluster, workload, params, gpu_models, gpus, speed_unit order by end_at desc, run_key
        ) as recency
    from runs
    where not_comparable is null
),

counted as (
    select cluster, workload, params, gpu_models, gpus, speed_unit, count(not_comparable) as left_out_runs
    from runs
    group by all
)

select
    counted.* exclude (left_out_runs),
    count(*) as runs,
    any_value(counted.left_out_runs) as left_out_runs,
    sum(comparable.steps)::bigint as steps,
    max(comparable.speed) as best_speed,
    arg_max(comparable.run_key, comparable.speed) as best_run_key,
    arg_max(comparable.run_id, comparable.speed) as best_run_id,
    median(comparable.speed) as usual_speed,
    median(comparable.comm_ratio) as usual_comm_ratio,
    stddev_samp(comparable.speed) / avg(comparable.speed) as run_variation_ratio,
    median(comparable.step_variation_ratio) as step_variation_ratio,
    any_value(comparable.run_key) filter (where comparable.recency = 1) as last_run_key,
    any_value(comparable.run_id) filter (where comparable.recency = 1) as last_run_id,
    max(comparable.end_at) as last_at,
    any_value(comparable.speed) filter (where comparable.recency = 1)
        / median(comparable.speed) filter (where comparable.recency > 1) - 1 as last_change_ratio
from counted
inner join comparable
    on counted.cluster = comparable.cluster
    and counted.workload = comparable.workload
    and counted.params is not distinct from comparable.params
    and counted.gpu_models is not distinct from comparable.gpu_models
    and counted.gpus = comparable.gpus
    and counted.speed_unit = comparable.speed_unit
group by counted.cluster, counted.workload, counted.params, counted.gpu_models, counted.gpus, counted.speed_unit
