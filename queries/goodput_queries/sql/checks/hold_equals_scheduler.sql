-- Job runs whose allocated time, in the ledger and in marts.unplaced together, differs from the scheduler's, in its units
-- (each allocated GPU or instance counts 1), but for time that a later job run took over or that the node was down. Job runs that
-- began in hours whose segments were dropped by age are left out.
-- grain: job_run_key
with runs as (
    select runs.job_run_key, runs.gpus * (least(coalesce(runs.end_ms, clusters.as_of_ms), clusters.as_of_ms) - runs.start_ms) as scheduler_ms
    from intermediate.int_job_runs as runs
    inner join intermediate.int_clusters as clusters using (cluster)
    where not runs.is_inferred and runs.gpus > 0 and runs.start_ms is not null
        and (runs.end_ms is null or runs.end_ms > runs.start_ms)
        and runs.start_ms >= (
            select coalesce(max(kept_from_ms), 0) from state.kept_from where table_name = 'ledger_segments'
        )
),

ledger as (
    select job_run_key, sum(end_ms - start_ms) as ledger_ms from intermediate.int_ledger_segments
    where job_run_key is not null group by job_run_key
),

unplaced as (
    select job_run_key, sum(gpu_ms)::bigint as unplaced_ms from marts.unplaced group by job_run_key
),

excused as (
    select job_run_key from intermediate.int_hold_conflicts
    union
    select job_run_key from intermediate.int_job_runs where end_ms is null and len(nodes) > 0
    union
    -- a part of a GPU beside the ledger counts as that part
    select job_run_key from intermediate.int_parts_of_gpus where gpu_uuid is null
    union
    -- pods of a gang begin and end by themselves: their holds add up to less than its size by its length
    select job_run_key
    from intermediate.int_job_runs
    semi join staging.stg_gangs_in_parts using (cluster, job_id_raw, submit_ms)
)

select
    runs.job_run_key,
    runs.scheduler_ms,
    coalesce(ledger.ledger_ms, 0) as ledger_ms,
    coalesce(unplaced.unplaced_ms, 0) as unplaced_ms
from runs
left join ledger using (job_run_key)
left join unplaced using (job_run_key)
anti join excused using (job_run_key)
where runs.scheduler_ms <> coalesce(ledger.ledger_ms, 0) + coalesce(unplaced.unplaced_ms, 0)
