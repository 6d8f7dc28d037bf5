-- Goodput of runs by wall clock, as other tools define it, over their whole life, independent of the scope's window: to
-- compare with their figures. Of attempts that reported events alone.
-- grain: run_key
-- access: team
-- wall_ms: from the end of the first step to the end of the run, by its last event unless it ended well
-- lost_ms: of each interruption, from the last save before it to the interruption; 0 before the first save
-- rescheduling_ms: of each interruption, to the first event of the next attempt
-- resuming_ms: from the first event of each attempt to the end of its first step
-- saving_ms: blocking parts of saves
-- nvcre_goodput_ratio: as NVIDIA's Cluster Readiness Engine defines it; null: the run completed no step
with in_scope_attempts as (
    select *, attempt = max(attempt) over (partition by run_key) as is_last
    from intermediate.int_attempts
    where
        of_teams(team)
        and in_cluster(cluster)
        and in_run(run_key)
),

attempts as (
    select
        attempts.run_key,
        attempts.attempt,
        moments.*,
        case when attempts.is_last and attempts.outcome in ('ok', 'running', 'unknown')
            then coalesce(attempts.end_ms, clusters.as_of_ms)
        end as done_ms,
        least(moments.last_ms, coalesce(attempts.end_ms, moments.last_ms)) as interrupted_ms
    from in_scope_attempts as attempts
    inner join intermediate.int_attempt_moments as moments using (attempt_key)
    inner join intermediate.int_clusters as clusters using (cluster)
),

in_order as (
    select
        *,
        lag(interrupted_ms) over by_attempt as before_ms,
        max(saved_ms) over (partition by run_key order by attempt rows unbounded preceding) as last_saved_ms
    from attempts
    window by_attempt as (partition by run_key order by attempt)
),

parts as (
    select
        run_key,
        min(stepped_ms) as from_ms,
        coalesce(max(done_ms), max(interrupted_ms)) as to_ms,
        coalesce(sum(greatest(0, interrupted_ms - last_saved_ms)) filter (where done_ms is null), 0)::bigint as lost_ms,
        coalesce(sum(greatest(0, begin_ms - before_ms)) filter (where stepped_ms is not null), 0)::bigint as rescheduling_ms,
        coalesce(sum(greatest(0, stepped_ms - begin_ms)), 0)::bigint as resuming_ms,
        sum(saving_ms)::bigint as saving_ms
    from in_order
    group by run_key
)

select
    run_key,
    greatest(0, to_ms - from_ms) as wall_ms,
    * exclude (run_key, from_ms, to_ms),
    nvcre_goodput_ratio(greatest(0, to_ms - from_ms), lost_ms, rescheduling_ms, resuming_ms, saving_ms) as nvcre_goodput_ratio
from parts
where from_ms is not null
