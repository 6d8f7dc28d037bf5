-- How long job runs that ask for GPUs waited in the queue, by team, by size and by reason: those that started in the
-- scope's window, and those that wait at its end. A wait begins when the job run is eligible: a dependency is no wait.
-- grain: group_by, name
-- access: team
-- group_by: team, size (GPUs asked for) or reason (as the scheduler gives it)
-- place: order of sizes
-- started: job runs that started in the window; wait_p50_s, wait_p90_s, wait_max_s: their waits
-- waiting: job runs that wait; waiting_gpus: GPUs they ask for; longest_waiting_s: of the one that waits longest
with ends as (
    select cluster, least(as_of_ms, coalesce(chosen_to_ms(), as_of_ms)) as at_ms
    from intermediate.int_clusters
),

waits as (
    select
        runs.team,
        reasons.reason,
        runs.gpus_requested,
        ends.at_ms,
        runs.start_ms <= ends.at_ms as is_started,
        case when runs.eligible_ms <= least(runs.start_ms, ends.at_ms)
            then (least(coalesce(runs.start_ms, ends.at_ms), ends.at_ms) - runs.eligible_ms) / 1000
        end as wait_s
    from intermediate.int_job_runs as runs
    inner join ends using (cluster)
    left join staging.stg_queue_reasons as reasons using (job_run_key)
    left join intermediate.int_job_run_owners as owners using (job_run_key)
    where
        runs.gpus_requested > 0
        and not runs.is_inferred
        and in_cluster(runs.cluster)
        and of_owner(runs.team, runs.user_name, owners.run_key, runs.partition)
        and (
            runs.start_ms >= scope_from_ms() and runs.start_ms <= ends.at_ms
            or runs.eligible_ms <= ends.at_ms
            and coalesce(runs.start_ms, runs.record_end_ms, forever_ms()) > ends.at_ms
        )
),

sized as (
    select
        *,
        case
            when gpus_requested = 1 then 1
            when gpus_requested <= 8 then 2
            when gpus_requested <= 64 then 3
            when gpus_requested <= 512 then 4
            else 5
        end as size_class
    from waits
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
    count(*) filter (where not coalesce(is_started, false)) as waiting,
    coalesce(sum(gpus_requested) filter (where not coalesce(is_started, false)), 0)::bigint as waiting_gpus,
    max(wait_s) filter (where not coalesce(is_started, false)) as longest_waiting_s
from named
group by group_by, name, place
