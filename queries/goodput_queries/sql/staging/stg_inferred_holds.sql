-- Holds inferred on nodes that no scheduler, label or Kubernetes source covers: from job events, for as long as the run
-- lives; else from processes that NVML lists. temp.inferred_activity has activity without either.
-- grain: job_run_key, node, gpu_uuid, slurm_index, start_ms
-- job_run_key: a run from one start, after ten minutes without an event, to the next; a process of a node likewise
-- kind: job_event, process
-- owner: the run, or the process
-- job_name: the command of a process in short; null: not known, or a run
-- user_name: of a process; of a run as `goodput run` reports it
-- slurm_index: of a GPU that no inventory knows: the local rank
-- gpus: how many GPUs of the node, where none is named
-- end_ms: null: it is running: the process is on the latest list, or the run lives and reported no end
-- state: COMPLETED, FAILED (the job's last word), UNKNOWN
-- is_stalled: the job lived for 15 minutes and more without an event
-- materialised: full, since job runs and what they held are asked of it, and few change
-- change_tracking: by job_run_key
-- skip_if_empty: staging.stg_unscheduled
with gpus as (
    select gpus.cluster, gpus.node, gpus.gpu_uuid, any_value(nodes.until_ms) as until_ms
    from staging.stg_gpus as gpus
    inner join (select distinct cluster, node, until_ms from staging.stg_unscheduled) as nodes using (cluster, node)
    group by gpus.cluster, gpus.node, gpus.gpu_uuid
),

users as (
    select
        coalesce(events.cluster, node_clusters.cluster, 'default') as cluster,
        events.run_id,
        max(events.extra ->> '$.user')[:100] as user_name
    from raw.job_events as events
    left join staging.stg_node_clusters as node_clusters on events.host = node_clusters.node
    where events.event = 'job.start' and events.extra is not null
    group by all
),

of_jobs as (
    select
        holds.job_run_key,
        holds.cluster,
        'job_event' as kind,
        holds.run_id as owner,
        holds.submit_ms,
        holds.node,
        holds.gpu_uuid,
        holds.slurm_index,
        holds.gpus,
        holds.start_ms,
        coalesce(silent.alive_ms, holds.end_ms) as last_ms,
        case when silent.job_run_key is null then holds.end_ms else silent.end_ms end as end_ms,
        holds.state,
        coalesce(silent.is_stalled, false) as is_stalled,
        null::varchar as job_name,
        users.user_name
    from staging.stg_event_holds as holds
    left join users using (cluster, run_id)
    left join staging.stg_silent_runs as silent on holds.job_run_key = silent.job_run_key and holds.is_last
),

stays as (
    select
        gpus.cluster,
        gpus.node,
        processes.gpu_uuid,
        processes.pid,
        processes.first_ms,
        least(processes.last_ms, gpus.until_ms) as last_ms
    from staging.stg_process_presence as processes
    inner join gpus using (gpu_uuid)
    where processes.pid >= 0 and processes.first_ms < coalesce(gpus.until_ms, forever_ms())
),

stays_marked as (
    select
        *,
        coalesce(first_ms - max(last_ms) over (
            partition by cluster, node, pid order by first_ms, last_ms, gpu_uuid
            rows between unbounded preceding and 1 preceding
        ) > threshold('label_absent_ms'), true) as is_new_process,
        coalesce(first_ms - max(last_ms) over (
            partition by cluster, node, pid, gpu_uuid order by first_ms, last_ms
            rows between unbounded preceding and 1 preceding
        ) > threshold('label_absent_ms'), true) as is_new_stay
    from stays
),

stays_counted as (
    select
        *,
        count_if(is_new_process) over (
            partition by cluster, node, pid order by first_ms, last_ms, gpu_uuid rows unbounded preceding
        ) as process,
        count_if(is_new_stay) over (
            partition by cluster, node, pid, gpu_uuid order by first_ms, last_ms rows unbounded preceding
        ) as stay
    from stays_marked
),

listed as (
    select
        cluster, node, pid, process, gpu_uuid, stay,
        min(min(first_ms)) over (partition by cluster, node, pid, process) as listed_ms,
        min(first_ms) as first_ms,
        max(last_ms) as last_ms
    from stays_counted
    group by cluster, node, pid, process, gpu_uuid, stay
),

-- /proc has starts to the second
described as (
    select listed.*, described.start_ms as began_ms, described.gone_ms, described.process_name, described.user_name
    from listed
    asof left join staging.stg_processes as described
        on listed.cluster = described.cluster
        and listed.node = described.node
        and listed.pid = described.pid
        and listed.listed_ms + 1000 >= described.start_ms
),

-- a process that is on a GPU soon after its start was there to use it, and has it until it is gone
processes as (
    select
        * exclude (listed_ms, last_ms, began_ms, gone_ms, process_name, user_name),
        case when is_known then process_name end as job_name,
        case when is_known then user_name end as user_name,
        coalesce(is_known and gone_ms between last_ms and last_ms + 60000, false) as is_gone,
        case when is_gone then gone_ms else last_ms end as last_ms,
        case
            when is_known and first_ms - began_ms <= threshold('label_absent_ms') then least(began_ms, first_ms)
            else first_ms
        end as start_ms,
        min(start_ms) over (partition by cluster, node, pid, process) as submit_ms
    from (
        select
            *,
            began_ms is not null and coalesce(gone_ms, forever_ms()) >= listed_ms as is_known
        from described
    )
),

-- runs with events take precedence over listed processes, earlier ones over later ones
taken as (
    select
        cluster, node, gpu_uuid, start_ms, coalesce(end_ms, forever_ms()) as end_ms,
        max(coalesce(end_ms, forever_ms())) over (
            partition by cluster, node, gpu_uuid order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ) as before_ms
    from of_jobs
    where gpu_uuid is not null
),

open_times as (
    select cluster, node, gpu_uuid, coalesce(before_ms, -9223372036854775808) as open_ms, start_ms as until_ms
    from taken
    where coalesce(before_ms < start_ms, true)
    union all
    select cluster, node, gpu_uuid, max(end_ms), forever_ms() from taken group by cluster, node, gpu_uuid
    union all
    select distinct cluster, node, gpu_uuid, -9223372036854775808, forever_ms()
    from processes
    anti join taken using (cluster, node, gpu_uuid)
),

cut as (
    select
        processes.* exclude (start_ms, last_ms),
        greatest(processes.start_ms, open_times.open_ms) as start_ms,
        least(processes.last_ms, open_times.until_ms) as last_ms
    from processes
    inner join open_times
        on processes.cluster = open_times.cluster
        and processes.node = open_times.node
        and processes.gpu_uuid = open_times.gpu_uuid
        and processes.start_ms < open_times.until_ms
        and processes.last_ms > open_times.open_ms
),

alone as (
    select
        * exclude (start_ms),
        greatest(start_ms, coalesce(max(last_ms) over (
            partition by cluster, node, gpu_uuid order by first_ms, pid, last_ms
            rows between unbounded preceding and 1 preceding
        ), start_ms)) as start_ms
    from cut
),

lists as (
    select gpu_uuid, max(last_ms) as read_ms, max(max(last_ms)) over () - threshold('label_absent_ms') as since_ms
    from staging.stg_process_presence
    where pid = -1
    group by gpu_uuid
),

of_processes as (
    select
        alone.cluster || '/' || alone.node || '/pid ' || alone.pid || '@' || alone.submit_ms // 1000 as job_run_key,
        alone.cluster,
        'process' as kind,
        case
            when alone.pid = 0 then 'process on ' || alone.node
            else coalesce(nullif(alone.job_name, '') || ' (pid ' || alone.pid || ' on ' || alone.node || ')',
                'pid ' || alone.pid || ' on ' || alone.node)
        end as owner,
        alone.submit_ms,
        alone.node,
        alone.gpu_uuid,
        null::integer as slurm_index,
        null::integer as gpus,
        alone.start_ms,
        alone.last_ms,
        -- a process on the latest list continues until a scheduler covers the node
        case
            when alone.is_gone or alone.last_ms < greatest(lists.read_ms, lists.since_ms) then alone.last_ms
            else gpus.until_ms
        end as end_ms,
        'UNKNOWN' as state,
        false as is_stalled,
        alone.job_name,
        alone.user_name
    from alone
    inner join gpus using (cluster, node, gpu_uuid)
    left join lists using (gpu_uuid)
    where alone.last_ms > alone.start_ms
)

from of_jobs
union all
from of_processes
