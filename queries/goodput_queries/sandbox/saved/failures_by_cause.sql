-- Failed attempts by cause
-- Attempts that failed within the time range by cause: their number, lost GPU-hours and cost.
select
    team,
    cause,
    count(*) as attempts,
    sum(lost_gpu_ms) / 3600000 as lost_gpu_h,
    sum(lost_cost) as lost_cost,
    max(end_at) as last_at
from marts.attempt_causes
where rank = 1
group by all
order by lost_gpu_h desc nulls last
