-- Lives of gangs in job events: one row a run and attempt, with its job run.
-- Matched by (1) run = job id, (2) run = job name and the host is one of its nodes, or no host is named and only one job
-- run of the name ran then, both the nearest in time, (3) the only job run that had the GPU then or, where no
-- inventory knows the GPU, GPUs of the host.
-- grain: cluster, run_id, attempt
-- job_run_key: null: unmatched, listed in marts.data_quality
-- place: rank of its strongest source (event_source_place)
-- match: how it was matched: job_id, job_name, hold
-- materialised: run_ids, since only runs with new events or other holds change
-- skip_if_empty: temp.dirty_run_ids
with named as (
    select
        lives.cluster,
        lives.run_id,
        lives.attempt,
        lives.hosts,
        job_runs.job_run_key,
        case when job_runs.is_id then 1 else 2 end as rank,
        off_hold_ms(lives.first_ms, lives.last_ms, job_runs.start_ms, job_runs.end_ms) as off_ms,
        least(lives.last_ms, job_runs.end_ms) - greatest(lives.first_ms, job_runs.start_ms) as overlap_ms
    from temp.int_event_spans as lives
    inner join temp.named_job_runs as job_runs
        on lives.cluster = job_runs.cluster
        and lives.run_id = job_runs.run_id
        and is_near_hold(job_runs.is_id, lives.first_ms, lives.last_ms, job_runs.start_ms, job_runs.end_ms)
    where
        lives.run_id <> ''
        and (job_runs.is_id or lives.hosts is null or list_has_any(lives.hosts, job_runs.nodes))
),

by_name as (
    select * exclude (hosts)
    from named
    qualify
        rank = 1
        or hosts is not null
        or count_if(off_ms = 0) over (partition by cluster, run_id, attempt) <= 1
),

unnamed as (
    select
        *,
        -- a site without UUIDs in its inventory has numbered slots: there the host decides
        exists (
            from intermediate.int_gpu_inventory as inventory
            where list_contains(lives.gpu_uuids, inventory.gpu_uuid)
        ) as has_known_gpu
    from temp.int_event_spans as lives
    anti join by_name using (cluster, run_id, attempt)
),

by_hold as (
    select
        lives.cluster,
        lives.run_id,
        lives.attempt,
        min(holds.job_run_key) as job_run_key,
        3 as rank,
        0 as off_ms,
        0 as overlap_ms
    from unnamed as lives
    inner join intermediate.int_holds as holds
        on lives.cluster = holds.cluster
        and holds.start_ms < lives.last_ms
        and coalesce(holds.end_ms, forever_ms()) > lives.first_ms
        and case
            when lives.has_known_gpu then list_contains(lives.gpu_uuids, holds.gpu_uuid)
            else list_contains(lives.hosts, holds.node)
        end
    group by lives.cluster, lives.run_id, lives.attempt
    having count(distinct holds.job_run_key) = 1
),

best as (
    select
        cluster,
        run_id,
        attempt,
        min({rank: rank, off_ms: off_ms, less_ms: -overlap_ms, job_run_key: job_run_key}) as match
    from (
        select * from by_name
        union all
        select * from by_hold
    )
    group by cluster, run_id, attempt
)

select
    lives.* exclude (has_start, first_step, last_step, begun_until_ms, failed_ms),
    best.match.job_run_key,
    case best.match.rank when 1 then 'job_id' when 2 then 'job_name' when 3 then 'hold' end as match
from temp.int_event_spans as lives
left join best using (cluster, run_id, attempt)
