-- Hours in which the roll-up and the segments differ.
-- grain: hour_ms, category
with segments as (
    select hour_ms, category, sum(gpu_ms) as gpu_ms from marts.ledger_segments group by all
),

hourly as (
    select hour_ms, category, sum(gpu_ms) as gpu_ms from marts.ledger_hourly group by all
)

select hour_ms, category, segments.gpu_ms as segments_ms, hourly.gpu_ms as hourly_ms
from segments
full join hourly using (hour_ms, category)
where segments.gpu_ms is distinct from hourly.gpu_ms
