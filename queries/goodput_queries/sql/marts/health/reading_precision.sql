-- How exactly readings place the changes between activity and inactivity in allocated time: each to within one sampling
-- interval. Of the time range, cluster and node of the scope.
-- grain: cluster
-- evaluated: first
-- changes: number of changes between active and inactive that readings show
-- gpu_ms: active and idle time may be off by this: each change by one interval
-- interval_s: the longest sampling interval at these changes
-- unseen_s: shorter inactivity may show in fewer than two readings, and is active time then
with segments as materialized (
    select *
    from intermediate.int_ledger_segments
    where
        hour_ms >= scope_from_ms() // one_hour_ms() * one_hour_ms()
        and in_window(start_ms, end_ms)
        and in_cluster(cluster)
        and in_node(node)
        and category in ('busy_unclassified', 'idle_held')
),

-- a join of neighbours takes a third of the time of a window over all of them
changes as (
    select
        segments.cluster,
        segments.gpu_uuid,
        read_instance(segments.gpu_instance) as gpu_instance,
        segments.hour_ms,
        segments.gpu_ms / (segments.end_ms - segments.start_ms) as share
    from segments
    inner join segments as before
        on segments.gpu_uuid = before.gpu_uuid
        and segments.gpu_instance = before.gpu_instance
        and segments.start_ms = before.end_ms
        and segments.category <> before.category
        and segments.job_run_key is not distinct from before.job_run_key
),

intervals as (
    select gpu_uuid, gpu_instance, hour_ms, max(interval_ms) as interval_ms
    from intermediate.int_gpu_activity
    group by gpu_uuid, gpu_instance, hour_ms
)

select
    changes.cluster,
    count(*) as changes,
    round(sum(changes.share * intervals.interval_ms))::bigint as gpu_ms,
    max(intervals.interval_ms) / 1000.0 as interval_s,
    -- an average over an interval in which anything ran is active: two whole intervals have to lie in a pause
    3 * max(intervals.interval_ms) / 1000.0 as unseen_s
from changes
inner join intervals using (gpu_uuid, gpu_instance, hour_ms)
group by changes.cluster
