-- Job runs whose held GPU time in the ledger is not what the scheduler says, in its units (each allocated GPU
-- or instance counts 1), but for time that a later job run took over, that the node was down, or that lies
-- outside of the inventory's dates.
-- grain: job_run_key
with runs as (
    select runs.job_run_key, runs.gpus * (least(coalesce(runs.end_ms, clusters.as_of_ms), clusters.as_of_ms) - runs.start_ms) as scheduler_ms
    from intermediate.int_job_runs as runs
    inner join intermediate.int_clusters as clusters using (cluster)
    where not runs.is_inferred and runs.gpus > 0 and runs.start_ms is not null and len(runs.nodes) > 0
        and (runs.end_ms is null or runs.end_ms > runs.start_ms)
),

ledger as (
    select job_run_key, sum(end_ms - start_ms) as ledger_ms from marts.ledger_segments
    where job_run_key is not null group by job_run_key
),

excused as (
    select job_run_key from intermediate.int_hold_conflicts
    union
    select job_run_key from intermediate.int_job_runs where end_ms is null
    union
    -- pods of a gang begin and end by themselves: their holds add up to less than its size by its length
    select runs.job_run_key
    from intermediate.int_job_runs as runs
    inner join raw.holds as holds
        on runs.cluster = holds.cluster
        and runs.job_id_raw = holds.job_id_raw
        and runs.submit_ms = to_ms(holds.submit_at)
    where holds.start_at is not null
    union
    select holds.job_run_key
    from intermediate.int_holds as holds
    inner join intermediate.int_gpu_inventory as gpus using (gpu_uuid, node)
    where gpus.is_dated
        and (holds.start_ms < gpus.start_ms or coalesce(holds.end_ms, 0) > coalesce(gpus.end_ms, 9223372036854775807))
)

select runs.job_run_key, runs.scheduler_ms, coalesce(ledger.ledger_ms, 0) as ledger_ms
from runs
left join ledger using (job_run_key)
anti join excused using (job_run_key)
where runs.scheduler_ms <> coalesce(ledger.ledger_ms, 0)
