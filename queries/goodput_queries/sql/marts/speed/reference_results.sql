-- Published training times of a benchmark, with the site's own runs of that name and size in the scope's window.
-- Published are medians of runs in the submitters' logs (MLPerf Training), not verified by MLCommons and not its scores.
-- grain: round, submitter, system, benchmark
-- evaluated: first
-- access: team
-- gpus, gpu_model: of the system; published_runs: that reached the quality target
-- published_time_s: median from run_start to run_stop
-- own_runs: that ended well; own_time_s: median of their retained step time; own_gpu_models: theirs
-- time_ratio: own / published
-- source: where the logs are, with their commit and licence
with own as (
    select
        attempts.run_key,
        lower(any_value(attempts.job_name)) as benchmark,
        max(attempts.gpus) as gpus,
        sum(steps.end_ms - steps.start_ms) filter (where steps.fate = 'kept') / 1000.0 as time_s
    from intermediate.int_attempts as attempts
    inner join intermediate.int_train_steps as steps using (attempt_key)
    where
        in_window(attempts.start_ms, attempts.end_ms)
        and of_owner(attempts.team, attempts.user_name, attempts.run_key, attempts.partition)
        and in_cluster(attempts.cluster)
    group by attempts.run_key
    having arg_max(attempts.outcome, attempts.attempt) = 'ok' and time_s > 0
),

sites as (
    select
        own.benchmark,
        own.gpus,
        count(*) as runs,
        median(own.time_s) as time_s,
        string_agg(distinct models.gpu_models, ', ' order by models.gpu_models) as gpu_models
    from own
    left join marts.run_gpu_models as models using (run_key)
    group by own.benchmark, own.gpus
)

select
    results.* exclude (runs, time_s, source),
    results.runs as published_runs,
    results.time_s as published_time_s,
    coalesce(sites.runs, 0) as own_runs,
    sites.time_s as own_time_s,
    sites.gpu_models as own_gpu_models,
    sites.time_s / results.time_s as time_ratio,
    results.source
from reference.mlperf_results as results
left join sites on results.benchmark = sites.benchmark and results.gpus = sites.gpus
