-- Checkpoint saves and failures of runs in the scope's window: inputs of scenarios about the checkpoint interval.
-- Counts blocking saves; an asynchronous save delays no step.
-- grain: run_key
-- access: team
-- gpus: the most that an attempt had
-- saves: blocking saves
-- save_s: median length of a save
-- interval_s: median time from the end of a save to the begin of the next one of the same attempt
-- attempts, failures: lives of the run's gang, and those that failed
-- run_s: total duration of its attempts
-- cluster_failures, cluster_gpu_ms: attempts of all runs of its cluster that infrastructure ended, and all GPU time
--     allocated to them: the failure rate per GPU of a run without failures so far (team-caused failures do not scale with GPUs)
with attempts as (
    select
        attempts.*,
        greatest(
            least(coalesce(attempts.end_ms, clusters.as_of_ms), scope_end(coalesce(attempts.end_ms, clusters.as_of_ms)))
            - scope_start(attempts.start_ms), 0
        ) as run_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_clusters as clusters using (cluster)
    where
        attempts.gpus > 0
        and of_teams(attempts.team)
        and in_window(attempts.start_ms, attempts.end_ms)
        and in_cluster(attempts.cluster)
),

by_cluster as (
    select
        attempts.cluster,
        count(*) filter (where causes.is_platform) as cluster_failures,
        sum(attempts.run_ms * attempts.gpus)::bigint as cluster_gpu_ms
    from attempts
    left join intermediate.int_attempt_causes as causes using (attempt_key)
    group by attempts.cluster
),

by_run as (
    select
        run_key,
        any_value(columns(['run_id', 'cluster', 'team'])),
        max(gpus) as gpus,
        count(*) as attempts,
        count(*) filter (where outcome = 'failed') as failures,
        sum(run_ms) / 1000 as run_s,
        sum(run_ms * gpus)::bigint as gpu_ms
    from attempts
    where in_scope(cluster, null, null, null, team, user_name, run_key, partition)
    group by run_key
),

-- parts of one save follow each other without a gap
parts as (
    select
        attempts.run_key,
        timeline.attempt_key,
        timeline.start_ms,
        timeline.end_ms,
        coalesce(timeline.start_ms > lag(timeline.end_ms) over of_attempt, true) as is_new
    from intermediate.int_run_timeline as timeline
    inner join attempts using (attempt_key)
    where
        (timeline.phase = 'ckpt_save' or timeline.category = 'checkpoint_save')
        and timeline.end_ms is not null
        and in_window(timeline.start_ms, timeline.end_ms)
    window of_attempt as (partition by timeline.attempt_key order by timeline.start_ms)
),

numbered as (
    select *, sum(is_new::integer) over (partition by attempt_key order by start_ms rows unbounded preceding) as nr
    from parts
),

saves as (
    select
        run_key,
        attempt_key,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms
    from numbered
    group by run_key, attempt_key, nr
),

spaced as (
    select
        run_key,
        end_ms - start_ms as save_ms,
        lead(start_ms) over (partition by attempt_key order by start_ms) - end_ms as interval_ms
    from saves
),

by_saves as (
    select
        run_key,
        count(*) as saves,
        median(save_ms) / 1000 as save_s,
        median(interval_ms) / 1000 as interval_s
    from spaced
    group by run_key
)

select
    by_run.* exclude (attempts, failures, run_s),
    coalesce(by_saves.saves, 0) as saves,
    by_saves.save_s,
    by_saves.interval_s,
    by_run.attempts,
    by_run.failures,
    by_run.run_s,
    by_cluster.cluster_failures,
    by_cluster.cluster_gpu_ms
from by_run
inner join by_cluster using (cluster)
left join by_saves using (run_key)
