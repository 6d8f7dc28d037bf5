-- Lost GPU time by category and cause
-- GPU-hours that were not useful by category, cause and who is to act, with their cost.
select
    label as category,
    cause,
    blame,
    sum(gpu_ms) / 3600000 as gpu_h,
    sum(cost) as cost,
    count(distinct run_key) as runs
from marts.loss_causes
group by all
order by gpu_h desc
