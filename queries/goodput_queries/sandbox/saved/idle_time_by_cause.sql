-- Allocated but idle GPU time by cause
-- Idle gaps of allocated GPUs by team and cause: their number, GPU-hours, longest gap and cost.
select
    team,
    cause,
    count(*) as gaps,
    sum(gpu_ms) / 3600000 as gpu_h,
    max(gap_s) as longest_gap_s,
    sum(cost) as cost
from marts.idle_gaps
where is_held
group by all
order by gpu_h desc
