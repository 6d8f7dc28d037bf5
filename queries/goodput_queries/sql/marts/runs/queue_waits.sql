-- How long job runs that ask for GPUs waited in the queue, by team, by size and by reason: those that started in the
-- scope's window, and those that wait at its end. A wait begins when the job run is eligible: a dependency is no wait.
-- grain: group_by, name
-- evaluated: first
-- access: team
-- group_by: team, size (GPUs asked for) or reason (as the scheduler gives it)
-- place: order of sizes
-- started: job runs that started in the window; wait_p50_s, wait_p90_s, wait_max_s: their waits
-- waiting: job runs that wait; waiting_gpus: GPUs they ask for; longest_waiting_s: of the one that waits longest
with sized as (
    select
        *,
        case
            when gpus = 1 then 1
            when gpus <= 8 then 2
            when gpus <= 64 then 3
            when gpus <= 512 then 4
            else 5
        end as size_class
    from marts.job_waits
),

named as (
    select 'team' as group_by, team as name, 0 as place, * from sized
    union all
    select
        'size',
        ['1 GPU', '2 to 8 GPUs', '9 to 64 GPUs', '65 to 512 GPUs', 'over 512 GPUs'][size_class],
        size_class,
        *
    from sized
    union all
    select 'reason', coalesce(reason, 'not given'), 0, * from sized
)

select
    group_by,
    name,
    place,
    count(*) filter (where is_started) as started,
    quantile_cont(wait_s, 0.5) filter (where is_started) as wait_p50_s,
    quantile_cont(wait_s, 0.9) filter (where is_started) as wait_p90_s,
    max(wait_s) filter (where is_started) as wait_max_s,
    count(*) filter (where not is_started) as waiting,
    coalesce(sum(gpus) filter (where not is_started), 0)::bigint as waiting_gpus,
    max(wait_s) filter (where not is_started) as longest_waiting_s
from named
group by group_by, name, place
