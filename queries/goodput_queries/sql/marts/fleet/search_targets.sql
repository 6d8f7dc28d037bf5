-- What the search of the dashboard finds: runs, nodes, GPUs and teams of all times.
-- grain: kind, value, cluster
-- access: team
-- kind: run, node, gpu, team
-- value: what a link carries: run_key, node, gpu_uuid, team
-- label: its name
-- detail: other names by which it is found: job ids and names, team, user, node, GPU model
-- start_at, end_at: of a run; null: still running, or not a run
with runs as (
    select
        attempts.cluster,
        attempts.run_key,
        any_value(attempts.run_id) as run_id,
        list_distinct(flatten(list([job_runs.job_name, job_runs.job_id, job_runs.team, job_runs.user_name]))) as names,
        min(attempts.start_ms) as start_ms,
        case when count(attempts.end_ms) = count(*) then max(attempts.end_ms) end as end_ms
    from intermediate.int_attempts as attempts
    inner join intermediate.int_job_runs as job_runs using (job_run_key)
    where of_teams(attempts.team)
    group by attempts.cluster, attempts.run_key
),

gpus as (
    select cluster, gpu_uuid, arg_max(node, coalesce(start_ms, 0)) as node, max(gpu_model) as gpu_model
    from intermediate.int_gpu_inventory
    group by cluster, gpu_uuid
)

select
    'run' as kind, run_key as value, run_id as label,
    array_to_string(list_filter(list_sort(names), lambda name: name <> run_id), ' / ') as detail,
    cluster, from_ms(start_ms) as start_at, from_ms(end_ms) as end_at
from runs
union all
select 'node', node, node, string_agg(distinct gpu_model, ' / '), cluster, null, null
from intermediate.int_gpu_inventory
where sees_all_teams()
group by cluster, node
union all
select 'gpu', gpu_uuid, gpu_uuid, concat_ws(' / ', node, gpu_model), cluster, null, null from gpus
where sees_all_teams()
union all
select distinct 'team', team, team, '', cluster, null::timestamp, null::timestamp
from intermediate.int_job_runs where team is not null and of_teams(team)
