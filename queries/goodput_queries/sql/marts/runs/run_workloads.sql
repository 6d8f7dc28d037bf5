-- Names of the workloads of runs: the job name, else the run id. Names that only number runs (train-001, train-002; night-d1,
-- night-d2) are one workload, `train-#`: three or more of one account that end in rising numbers, half of which or more are
-- there, each of one run. Numbers that say what a run is (bs-16, bs-32, bs-64) do not follow each other.
-- grain: run_key
-- access: team
-- evaluated: first
-- workload: its name; start_ms: of its first attempt; gpus: the most of an attempt; is_ok: its last attempt did not fail
with runs as (
    select
        run_key,
        any_value(cluster) as cluster,
        any_value(team) as team,
        coalesce(any_value(job_name), any_value(run_id)) as name,
        min(start_ms) as start_ms,
        max(gpus) as gpus,
        arg_max(outcome, attempt) = 'ok' as is_ok
    from intermediate.int_attempts
    where of_teams(team) and in_cluster(cluster)
    group by run_key
),

numbered as (
    select
        *,
        regexp_extract(name, '^(.*[-_.][a-zA-Z]?)\d{1,9}$', 1) as stem,
        regexp_extract(name, '[-_.][a-zA-Z]?(\d{1,9})$', 1)::bigint as number
    from runs
    where regexp_matches(name, '[-_.][a-zA-Z]?\d{1,9}$')
),

ordered as (
    select *, number <= lag(number) over (partition by cluster, team, stem order by start_ms, number) as is_fall
    from numbered
),

series as (
    select cluster, team, stem
    from ordered
    group by cluster, team, stem
    having
        count(*) >= threshold('workload_min_numbered')
        and count_if(is_fall) = 0
        and max(number) - min(number) < 2 * count(*)
)

select
    runs.* exclude (name),
    case when series.stem is not null then numbered.stem || '#' else runs.name end as workload
from runs
left join numbered using (run_key)
left join series
    on numbered.cluster is not distinct from series.cluster
    and numbered.team is not distinct from series.team
    and numbered.stem = series.stem
