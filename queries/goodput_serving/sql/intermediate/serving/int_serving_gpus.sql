-- GPUs of the engines of serving endpoints, with how each is known and for how long.
-- grain: cluster, endpoint, engine, gpu_uuid, gpu_instance, start_ms
-- engine: index inside the endpoint; '': it has one, or does not say
-- node: of the GPU
-- job_run_key: that had the GPU; null: nobody is known to have had it
-- method: label (the series names the GPUs), pod (labels of the GPUs name the pod), process (lists of processes name the
--  pid), job_run (the only job run on the node had them), node (nobody is known to have had any GPU of the node)
-- is_in_order: the method gives the GPUs of several engines: each has its part of them, in order
-- start_ms: the first report; of an engine that had just started the start of the hold, or the end of the engine before
-- end_ms: the last report, or the end of the hold
-- ready_ms: since when an engine that had just started has answered; null: it had started earlier
-- materialised: full, since pages ask it and few endpoints change
-- skip_if_empty: staging.stg_serving_endpoints
-- change_tracking: start_ms, end_ms
with reports as (
    select
        cluster, endpoint, engine, node, namespace, pod, pid, gpu_labels,
        min(first_ms) as first_ms,
        max(last_ms) as last_ms,
        min(first_zero_ms) as first_zero_ms,
        bool_or(has_samples) as has_samples,
        row_number() over (order by cluster, endpoint, engine, node, namespace, pod, pid, gpu_labels) as report
    from staging.stg_serving_endpoints
    where role <> 'frontend' and endpoint <> ''
    group by cluster, endpoint, engine, node, namespace, pod, pid, gpu_labels
    -- a request log names no engine: where the engines are known it counts for each of them
    qualify bool_or(has_samples) or not bool_or(bool_or(has_samples)) over (partition by cluster, endpoint)
),

units as (
    select
        cluster, node, gpu_uuid, gpu_instance,
        min(coalesce(gpu_index, slurm_index)) as gpu_index
    from intermediate.int_gpu_units
    where gpu_instance <> 'rest'
    group by all
),

by_label as (
    select labels.report, units.gpu_uuid, units.gpu_instance, labels.first_ms as from_ms, labels.last_ms as to_ms
    from (select *, unnest(gpu_labels) as label from reports) as labels
    inner join units
        on labels.cluster = units.cluster
        and (
            labels.label = units.gpu_uuid
            or labels.node = units.node and try_cast(labels.label as integer) = units.gpu_index
        )
),

owned as (
    select
        owners.cluster, owners.owner, owners.gpu_uuid, owners.gpu_instance, owners.first_ms, owners.last_ms,
        owners.first_ms - max(owners.last_ms) over (
            partition by owners.cluster, owners.owner, owners.gpu_uuid, owners.gpu_instance
            order by owners.first_ms, owners.last_ms rows between unbounded preceding and 1 preceding
        ) > threshold('label_absent_ms') as is_later
    from staging.stg_gpu_owners as owners
    where owners.kind = 'pod' and split_part(owners.owner, '/', 2) in (select pod from reports)
),

stays as (
    select cluster, owner, gpu_uuid, gpu_instance, min(first_ms) as first_ms, max(last_ms) as last_ms
    from (
        select
            *,
            count_if(coalesce(is_later, true)) over (
                partition by cluster, owner, gpu_uuid, gpu_instance order by first_ms, last_ms rows unbounded preceding
            ) as stay
        from owned
    )
    group by cluster, owner, gpu_uuid, gpu_instance, stay
),

by_pod as (
    select
        reports.report, stays.gpu_uuid, stays.gpu_instance,
        greatest(reports.first_ms, stays.first_ms) as from_ms,
        least(reports.last_ms, stays.last_ms + threshold('label_absent_ms')::bigint) as to_ms
    from reports
    inner join stays
        on reports.cluster = stays.cluster
        and split_part(stays.owner, '/', 2) = reports.pod
        and (reports.namespace = '' or split_part(stays.owner, '/', 1) = reports.namespace)
        and stays.first_ms <= reports.last_ms
        and stays.last_ms + threshold('label_absent_ms')::bigint >= reports.first_ms
    where reports.pod <> ''
),

by_process as (
    select
        reports.report, processes.gpu_uuid, units.gpu_instance,
        greatest(reports.first_ms, min(processes.first_ms)) as from_ms,
        reports.last_ms as to_ms
    from reports
    inner join units on reports.cluster = units.cluster and reports.node = units.node
    inner join staging.stg_process_presence as processes
        on units.gpu_uuid = processes.gpu_uuid and reports.pid = processes.pid
    where reports.pid > 0 and processes.last_ms >= reports.first_ms and processes.first_ms <= reports.last_ms
    group by reports.report, processes.gpu_uuid, units.gpu_instance, reports.first_ms, reports.last_ms
),

unplaced as (
    select *
    from reports
    where
        node <> ''
        and report not in (select report from by_label union all select report from by_pod union all select report from by_process)
),

node_holds as materialized (
    select
        cluster, node, job_run_key, gpu_uuid, gpu_instance, start_ms,
        coalesce(end_ms, forever_ms()) as end_ms
    from intermediate.int_holds
    where job_run_key in (
        select job_run_key from intermediate.int_holds where (cluster, node) in (select (cluster, node) from unplaced)
    )
),

node_runs as (
    select cluster, node, job_run_key, min(start_ms) as start_ms, max(end_ms) as end_ms
    from node_holds
    group by all
),

only_runs as (
    select unplaced.report, unplaced.cluster, unplaced.node, runs.job_run_key, unplaced.first_ms, unplaced.last_ms
    from unplaced
    inner join node_runs as runs
        on unplaced.cluster = runs.cluster
        and unplaced.node = runs.node
        and runs.start_ms <= unplaced.last_ms
        and runs.end_ms > unplaced.first_ms
    anti join node_runs as others
        on runs.cluster = others.cluster
        and runs.node = others.node
        and runs.job_run_key <> others.job_run_key
        and others.start_ms <= least(runs.end_ms - 1, unplaced.last_ms)
        and others.end_ms > greatest(runs.start_ms, unplaced.first_ms)
),

-- GPUs of the run on nodes without an engine are those of its only engine
by_job_run as (
    select
        runs.report, holds.gpu_uuid, holds.gpu_instance,
        greatest(runs.first_ms, holds.start_ms) as from_ms,
        least(runs.last_ms, holds.end_ms) as to_ms
    from (select *, count(*) over (partition by job_run_key) as engines from only_runs) as runs
    inner join node_holds as holds
        on runs.job_run_key = holds.job_run_key
        and (runs.node = holds.node or runs.engines = 1)
        and holds.start_ms <= runs.last_ms
        and holds.end_ms > runs.first_ms
),

by_node as (
    select unplaced.report, units.gpu_uuid, units.gpu_instance, unplaced.first_ms as from_ms, unplaced.last_ms as to_ms
    from unplaced
    inner join units on unplaced.cluster = units.cluster and unplaced.node = units.node
    anti join node_runs
        on unplaced.cluster = node_runs.cluster
        and unplaced.node = node_runs.node
        and node_runs.start_ms <= unplaced.last_ms
        and node_runs.end_ms > unplaced.first_ms
),

claims as (
    select 1 as place, 'label' as method, * from by_label
    union all
    select 2, 'pod', * from by_pod
    union all
    select 3, 'process', * from by_process
    union all
    select 4, 'job_run', * from by_job_run
    union all
    select 5, 'node', * from by_node
),

chosen as (
    select
        claims.report, claims.method, claims.gpu_uuid, claims.gpu_instance, claims.from_ms,
        greatest(claims.from_ms, claims.to_ms) as to_ms,
        reports.cluster, reports.endpoint, reports.engine, reports.node, reports.first_ms, reports.last_ms,
        reports.first_ms = reports.first_zero_ms as is_new,
        case claims.method
            when 'label' then ''
            when 'pod' then reports.namespace || '/' || reports.pod
            when 'process' then reports.node || ' ' || reports.pid
            else reports.node
        end as shared_by
    from claims
    inner join reports using (report)
    qualify claims.place = min(claims.place) over (partition by claims.report)
),

-- engines that one method gives the same GPUs have a part each, in the order of their names and of the GPUs
engines as (
    select
        mine.report,
        count(distinct (others.endpoint, others.engine)) as engines,
        count(distinct (others.endpoint, others.engine)) filter (
            (others.endpoint, others.engine) < (mine.endpoint, mine.engine)
        ) as before
    from (select distinct report, cluster, method, shared_by, endpoint, engine, first_ms, last_ms from chosen) as mine
    inner join (select distinct cluster, method, shared_by, endpoint, engine, first_ms, last_ms from chosen) as others
        on mine.cluster = others.cluster
        and mine.method = others.method
        and mine.shared_by = others.shared_by
        and others.first_ms <= mine.last_ms
        and others.last_ms >= mine.first_ms
    where mine.method <> 'label'
    group by mine.report
),

-- a GPU that was moved has been on several nodes: that of the engine counts
located as (
    select chosen.*, units.node as gpu_node, units.gpu_index
    from chosen
    inner join units using (cluster, gpu_uuid, gpu_instance)
    qualify row_number() over (
        partition by chosen.report, gpu_uuid, gpu_instance, chosen.from_ms, chosen.to_ms
        order by units.node = chosen.node desc, units.node
    ) = 1
),

numbered as (
    select
        located.*,
        coalesce(engines.engines, 1) as engines,
        coalesce(engines.before, 0) as before,
        dense_rank() over (
            partition by located.report
            order by located.gpu_node, located.gpu_index, located.gpu_uuid, located.gpu_instance
        ) - 1 as gpu,
        -- a hold that was cut has a GPU twice
        count(distinct (located.gpu_uuid, located.gpu_instance)) over (partition by located.report) as gpus
    from located
    left join engines using (report)
),

placed as (
    select *, engines > 1 and gpus % engines = 0 as is_in_order
    from numbered
    where engines = 1 or gpus % engines <> 0 or gpu // (gpus // engines) = before
),

held as (
    select
        placed.*,
        holds.job_run_key,
        greatest(placed.from_ms, coalesce(holds.start_ms, placed.from_ms)) as start_ms,
        least(placed.to_ms, coalesce(holds.end_ms, placed.to_ms)) as end_ms,
        case when placed.is_new and holds.start_ms <= placed.first_ms then holds.start_ms end as hold_ms
    from placed
    left join intermediate.int_holds as holds
        on placed.gpu_uuid = holds.gpu_uuid
        and placed.gpu_instance = holds.gpu_instance
        and holds.start_ms <= placed.to_ms
        and coalesce(holds.end_ms, forever_ms()) > placed.from_ms
),

begun as (
    select
        *,
        start_ms = first_ms and hold_ms is not null as is_begun,
        max(end_ms) over (
            partition by job_run_key, gpu_uuid, gpu_instance order by start_ms, end_ms
            rows between unbounded preceding and 1 preceding
        ) as before_ms
    from held
)

select
    cluster,
    endpoint,
    engine,
    gpu_node as node,
    gpu_uuid,
    gpu_instance,
    job_run_key,
    method,
    is_in_order,
    case when is_begun then least(start_ms, greatest(hold_ms, coalesce(before_ms, hold_ms))) else start_ms end as start_ms,
    max(end_ms) as end_ms,
    case when is_begun then start_ms end as ready_ms
from begun
group by all
