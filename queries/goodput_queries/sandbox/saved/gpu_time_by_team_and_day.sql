-- GPU time and cost by team and day
-- GPU-hours of each team, day (UTC) and category within the time range, with their cost.
select
    date_trunc('day', epoch_ms(hour_ms)) as day_at,
    team,
    category,
    sum(gpu_ms) / 3600000 as gpu_h,
    sum(cost) as cost
from marts.ledger_scoped
group by all
order by day_at, team, gpu_h desc
