-- Lives to which what a job reports belongs, by its run id, attempt and time: teams may call their runs alike.
-- grain: cluster, run_id, attempt, from_ms
-- attempt: null: of reports that do not number it, which are of the life that had begun last, those before the first one
--  of the first
select cluster, run_id, attempt, job_run_key, from_ms, until_ms
from intermediate.int_attempt_lives
union all by name
select
    cluster,
    run_id,
    null as attempt,
    job_run_key,
    case when lag(begin_ms) over in_order is null then 0 else begin_ms end as from_ms,
    coalesce(lead(begin_ms) over in_order, forever_ms()) as until_ms
from intermediate.int_attempt_lives
window in_order as (partition by cluster, run_id order by begin_ms, attempt, life)
