-- Job runs by each name that events may give them, of the runs that this build looks at.
-- grain: cluster, run_id, job_run_key
-- is_id: the name is the scheduler's number, which says by itself whose an event is
-- end_ms: far away while the job run goes on
-- materialised: inline, since it is asked again once the runs that are looked at have become more
select
    names.cluster,
    names.run_id,
    names.job_run_key,
    bool_or(names.is_id) as is_id,
    any_value(names.nodes) as nodes,
    any_value(names.start_ms) as start_ms,
    coalesce(any_value(names.end_ms), 9000000000000000000) as end_ms
from (
    select
        cluster,
        unnest([job_id, job_id_raw, job_name]) as run_id,
        unnest([true, true, false]) as is_id,
        job_run_key,
        nodes,
        start_ms,
        end_ms
    from intermediate.int_job_runs
    where start_ms is not null
) as names
semi join temp.dirty_run_ids using (cluster, run_id)
group by names.cluster, names.run_id, names.job_run_key
