-- Runs with the most wasted GPU time
-- Runs of the time range with allocated, useful and wasted GPU-hours, and the largest loss of each.
select
    run_name,
    team,
    user_name,
    gpus,
    held_ms / 3600000 as allocated_gpu_h,
    useful_ms / 3600000 as useful_gpu_h,
    wasted_ms / 3600000 as wasted_gpu_h,
    goodput_of_held_ratio,
    wasted_cost,
    verdict
from marts.runs
order by wasted_ms desc nulls last
limit 100
