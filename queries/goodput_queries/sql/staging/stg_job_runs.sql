-- Job runs: scheduler records with their times in epoch ms and their ending in the ledger's words.
-- grain: job_run_key
-- start_ms: max(start, submit), since a resized record repeats the first one's start; null: never started
-- end_ms: null while running or pending; of a running record that later listings leave out (the job was purged,
--     or is a runaway) the time of the last listing with it
-- outcome: ok, failed, limit (time limit, cancelled, preempted), unknown (its source fell silent), running, pending,
--     never_started; what ended with an exit code of its own before it was requeued has failed
-- is_infrastructure: the scheduler itself blames a node
-- waits: stretches {start_ms, end_ms} in which it waited for GPUs that it could have used if they had been free: eligible,
--  for no reservation, and held by no reason of reference.pending_reasons. The reason of a listing holds from the listing
--  before it, that of the last one until the start; without listings that of the accounting holds. null: it never did
-- eligible_ms: of pods of a job that was queued before it had them since then, while `waits` begin with the pods
-- state: of a wait in a queue PENDING, ADMITTED, CANCELLED; POD_CREATED: a job run of its pods continues it
-- wait_reason: of the last listing, else of the accounting
-- requested_nodes: the only ones on which it runs; excluded_nodes; feature_sets: a node needs all features of one of them
-- is_time_ambiguous: it started or ended in an hour that came twice, and nothing settles which: no node then
-- gpus: allocated; null where accounting does not track GPUs
-- is_inferred: from labels of telemetry, job events or lists of processes, without a scheduler record
-- ownership: source of ownership: scheduler, label, job_event, process
-- is_stalled: an inferred job run lived for 15 minutes and more after its last event, which was no end
with listed as (
    -- a listing of sacct or of an API server has every job that runs: one without a record says that it runs no more. A log
    -- that is followed (mlperf) and has fallen silent, while others of its cluster go on, neither
    select source, cluster, max(greatest(submit_at, start_at, end_at, observed_at)) as listed_at
    from raw.job_runs
    where source in ('slurm', 'kubernetes-api', 'mlperf')
    group by source, cluster
),

records as (
    select
        job_runs.*,
        -- a running record has its elapsed time at the time of the listing
        greatest(
            to_ms(observed_at),
            case
                when end_at is null and start_at is not null
                    then to_ms(start_at) + 1000 * (elapsed_s + coalesce(suspended_s, 0))
            end
        ) as observed_ms,
        to_ms(listed.listed_at) as listed_ms
    from raw.job_runs as job_runs
    left join listed using (source, cluster)
),

-- reasons that start with the name of one, and a family of them (QOS*) by its first letters
held as (
    select reasons.reason, not bool_and(known.is_demand) as is_held
    from (
        select reason from raw.job_runs
        union
        select reason from raw.job_requests
        union
        select reason from raw.queue_entries
    ) as reasons
    inner join reference.pending_reasons as known
        on regexp_extract(reasons.reason, '^\w+') = known.reason
        or (known.reason like '%*' and starts_with(reasons.reason, left(known.reason, -1)))
    group by reasons.reason
),

-- a listing in which a job no longer waits ends nothing: that it started does
listings as (
    select
        requests.cluster,
        requests.job_id_raw,
        requests.submit_at,
        to_ms(requests.observed_at) as observed_ms,
        coalesce(to_ms(lag(requests.observed_at) over of_job), 0) as before_ms,
        lead(requests.observed_at) over of_job is null as is_last,
        coalesce(held.is_held, false) as is_held,
        coalesce(held.is_held, false) is distinct from lag(coalesce(held.is_held, false)) over of_job as is_new
    from raw.job_requests as requests
    left join held on requests.reason = held.reason
    where requests.reason is not null and requests.observed_at is not null
    window of_job as (
        partition by requests.cluster, requests.job_id_raw, requests.submit_at order by requests.observed_at
    )
),

stretches as (
    select
        cluster,
        job_id_raw,
        submit_at,
        bool_and(is_held) as is_held,
        min(before_ms) as start_ms,
        case when not bool_or(is_last) then max(observed_ms) end as end_ms
    from (
        select
            *,
            count_if(is_new) over (
                partition by cluster, job_id_raw, submit_at order by observed_ms rows unbounded preceding
            ) as stretch
        from listings
    )
    group by cluster, job_id_raw, submit_at, stretch
),

-- waits: null where all that is listed holds it
listed_waits as (
    select
        cluster, job_id_raw, submit_at,
        list({start_ms: start_ms, end_ms: end_ms} order by start_ms) filter (not is_held) as waits
    from stretches
    group by cluster, job_id_raw, submit_at
),

requests as (
    select
        requests.cluster,
        requests.job_id_raw,
        requests.submit_at,
        arg_max(requests.requested_nodes, coalesce(requests.observed_at, requests.submit_at)) filter (
            len(requests.requested_nodes) >= coalesce(requests.nodes_requested, 0)
        ) as requested_nodes,
        arg_max(requests.excluded_nodes, coalesce(requests.observed_at, requests.submit_at)) as excluded_nodes,
        arg_max(requests.feature_sets, coalesce(requests.observed_at, requests.submit_at)) as feature_sets,
        arg_max(requests.reason, requests.observed_at) as reason,
        any_value(listed_waits.waits) as waits,
        bool_or(listed_waits.cluster is not null) as is_listed,
        max(coalesce(requests.load_sequence, 0)) as load_sequence
    from raw.job_requests as requests
    left join listed_waits using (cluster, job_id_raw, submit_at)
    group by requests.cluster, requests.job_id_raw, requests.submit_at
),

-- since when pods, or what made them, were queued
queued as (
    select cluster, job_id_raw, pods_submit_ms, min(since_ms) as since_ms, max(load_sequence) as load_sequence
    from staging.stg_queue_entries
    where pods_submit_ms is not null
    group by all
),

-- GPUs that a source names for a job of which the accounting has none
named as (
    select cluster, job_id_raw, submit_at, max(gpus)::integer as gpus, max(load_sequence) as load_sequence
    from (
        select
            cluster, job_id_raw, submit_at,
            sum(coalesce(gpus, 1)) as gpus,
            max(coalesce(load_sequence, 0)) as load_sequence
        from raw.holds
        where (cluster, job_id_raw, submit_at) in (
            select (cluster, job_id_raw, submit_at) from raw.job_runs where gpus is null and start_at is not null
        )
        group by source, method, cluster, job_id_raw, submit_at, start_at
        union all
        select cluster, job_id_raw, submit_at, sum(coalesce(gpus, 1)), max(coalesce(load_sequence, 0))
        from staging.stg_used_gres
        group by cluster, job_id_raw, submit_at
    )
    group by cluster, job_id_raw, submit_at
)

select
    records.cluster || '/' || records.job_id_raw || '@' || to_ms(records.submit_at) // 1000 as job_run_key,
    records.cluster,
    job_id,
    records.job_id_raw,
    coalesce(job_name, '') as job_name,
    coalesce(user_name, '') as user_name,
    coalesce(nullif(account, ''), '(no account)') as team,
    partition,
    qos,
    nullif(reservation, '') as reservation,
    state,
    exit_code,
    derived_exit_code,
    case
        when start_at is null and end_at is null then 'pending'
        when start_at is null then 'never_started'
        when end_at is null then 'running'
        when state = 'COMPLETED' then 'ok'
        when state = 'UNKNOWN' then 'unknown'
        when state = 'REQUEUED' and try_cast(split_part(exit_code, ':', 1) as integer) > 0 then 'failed'
        when state in ('TIMEOUT', 'CANCELLED', 'PREEMPTED', 'DEADLINE', 'REQUEUED', 'RESIZING', 'REVOKED')
            then 'limit'
        else 'failed'
    end as outcome,
    state in ('NODE_FAIL', 'BOOT_FAIL') as is_infrastructure,
    to_ms(records.submit_at) as submit_ms,
    coalesce(queued.since_ms, to_ms(eligible_at)) as eligible_ms,
    case when start_at is not null then to_ms(greatest(start_at, records.submit_at)) end as start_ms,
    case
        when start_at is null then null
        when end_at is not null then to_ms(end_at)
        when
            listed_ms - observed_ms
            > case source when 'mlperf' then threshold('silent_log_min_ms') else threshold('vanished_min_ms') end
            then greatest(observed_ms, to_ms(greatest(start_at, records.submit_at)))
    end as end_ms,
    to_ms(end_at) as record_end_ms,
    coalesce(observed_ms, to_ms(start_at)) as observed_ms,
    -- GPUs are not placed at a time that nobody knows
    case when is_time_ambiguous then [] else coalesce(nodes, []) end as nodes,
    -- a part of a GPU is one
    coalesce(nullif(records.gpus, 0), case when parts.is_of_one_gpu then 1 end, records.gpus, named.gpus) as gpus,
    gpu_type,
    coalesce(gpus_requested, records.gpus, named.gpus) as gpus_requested,
    coalesce(gpu_type_requested, gpu_type) as gpu_type_requested,
    cpus,
    coalesce(suspended_s, 0) as suspended_s,
    false as is_inferred,
    'scheduler' as ownership,
    false as is_stalled,
    case
        when coalesce(gpus_requested, records.gpus, named.gpus) > 0 and reservation is null and eligible_at is not null
            then nullif(
                list_filter(
                    list_transform(
                        case
                            when requests.is_listed then requests.waits
                            when not coalesce(held.is_held, false) then [{start_ms: null::bigint, end_ms: null::bigint}]
                        end,
                        lambda wait: {
                            start_ms: greatest(to_ms(eligible_at), wait.start_ms),
                            end_ms: least(wait.end_ms, to_ms(coalesce(start_at, end_at)))
                        }
                    ),
                    lambda wait: coalesce(wait.end_ms > wait.start_ms, true)
                ),
                []
            )
    end as waits,
    coalesce(requests.reason, records.reason) as wait_reason,
    requests.requested_nodes,
    requests.excluded_nodes,
    requests.feature_sets,
    coalesce(is_time_ambiguous, false) as is_time_ambiguous,
    -- null: written by an earlier version; GPUs may be named later than the record
    greatest(
        coalesce(records.load_sequence, 0), named.load_sequence, requests.load_sequence, queued.load_sequence
    ) as load_sequence
from records
left join named
    on records.gpus is null
    and records.cluster = named.cluster
    and records.job_id_raw = named.job_id_raw
    and records.submit_at = named.submit_at
left join staging.stg_parts_of_gpus as parts
    on records.cluster = parts.cluster
    and records.job_id_raw = parts.job_id_raw
    and to_ms(records.submit_at) = parts.submit_ms
left join held on records.reason = held.reason
left join requests
    on records.cluster = requests.cluster
    and records.job_id_raw = requests.job_id_raw
    and records.submit_at = requests.submit_at
left join queued
    on records.cluster = queued.cluster
    and records.job_id_raw = queued.job_id_raw
    and to_ms(records.submit_at) = queued.pods_submit_ms
union all by name
select
    queue.cluster || '/' || job_id_raw || '@' || since_ms // 1000 || '/queue' as job_run_key,
    queue.cluster,
    job_id_raw as job_id,
    job_id_raw,
    regexp_extract(job_id_raw, '[^/]*$') as job_name,
    '' as user_name,
    account as team,
    queue as partition,
    qos,
    case
        when pods_submit_ms is not null then 'POD_CREATED'
        when until_ms is null then 'PENDING'
        when is_admitted then 'ADMITTED'
        else 'CANCELLED'
    end as state,
    case when ended_ms is null then 'pending' else 'never_started' end as outcome,
    false as is_infrastructure,
    since_ms as submit_ms,
    since_ms as eligible_ms,
    ended_ms as record_end_ms,
    observed_ms,
    []::varchar[] as nodes,
    gpus as gpus_requested,
    gpu_type as gpu_type_requested,
    0 as suspended_s,
    false as is_inferred,
    'scheduler' as ownership,
    false as is_stalled,
    case when not coalesce(held.is_held, false) then [{start_ms: since_ms, end_ms: ended_ms}] end as waits,
    queue.reason as wait_reason,
    false as is_time_ambiguous,
    load_sequence
from (
    select
        *,
        case when coalesce(until_ms, pods_submit_ms) is not null
            then greatest(least(until_ms, pods_submit_ms), since_ms)
        end as ended_ms
    from staging.stg_queue_entries
) as queue
left join held on queue.reason = held.reason
union all by name
select
    job_run_key,
    cluster,
    owner as job_id,
    owner as job_id_raw,
    regexp_extract(owner, '[^/]*$') as job_name,
    coalesce(any_value(labels.user_name), '') as user_name,
    any_value(labels.partition) as partition,
    case when kind = 'pod' and contains(owner, '/') then split_part(owner, '/', 1) else '(no account)' end as team,
    case when count(*) = count(end_ms) then 'UNKNOWN' else 'RUNNING' end as state,
    case when count(*) = count(end_ms) then 'limit' else 'running' end as outcome,
    false as is_infrastructure,
    submit_ms,
    submit_ms as eligible_ms,
    submit_ms as start_ms,
    case when count(*) = count(end_ms) then max(end_ms) end as end_ms,
    case when count(*) = count(end_ms) then max(end_ms) end as record_end_ms,
    max(last_ms) as observed_ms,
    list(distinct node order by node) as nodes,
    -- however its part of a shared GPU changes, it is one
    count(distinct (gpu_uuid, read_instance(gpu_instance)))::integer as gpus,
    count(distinct (gpu_uuid, read_instance(gpu_instance)))::integer as gpus_requested,
    0 as suspended_s,
    true as is_inferred,
    'label' as ownership,
    false as is_stalled,
    false as is_time_ambiguous,
    max(load_sequence) as load_sequence
from staging.stg_owner_holds
left join (
    select cluster, kind, owner, max(user_name) as user_name, max(partition) as partition
    from staging.stg_gpu_owners
    where kind = 'hpc_job'
    group by cluster, kind, owner
) as labels using (cluster, kind, owner)
where kind <> 'share'
group by job_run_key, cluster, kind, owner, submit_ms
union all by name
select
    job_run_key,
    cluster,
    owner as job_id,
    owner as job_id_raw,
    coalesce(any_value(job_name), owner) as job_name,
    coalesce(any_value(user_name), '') as user_name,
    '(no account)' as team,
    case when count(*) = count(end_ms) then any_value(state) else 'RUNNING' end as state,
    case
        when count(*) > count(end_ms) then 'running'
        when any_value(state) = 'COMPLETED' then 'ok'
        when any_value(state) = 'FAILED' then 'failed'
        when any_value(state) in ('PREEMPTED', 'CANCELLED', 'TIMEOUT') then 'limit'
        when kind = 'job_event' then 'unknown'
        else 'limit'
    end as outcome,
    false as is_infrastructure,
    submit_ms,
    submit_ms as eligible_ms,
    min(start_ms) as start_ms,
    case when count(*) = count(end_ms) then max(end_ms) end as end_ms,
    case when count(*) = count(end_ms) then max(end_ms) end as record_end_ms,
    max(last_ms) as observed_ms,
    list(distinct node order by node) as nodes,
    (count(distinct (node, coalesce(gpu_uuid, slurm_index::varchar))) filter (where gpus is null)
        + coalesce(max(gpus), 0))::integer as gpus,
    0 as suspended_s,
    true as is_inferred,
    kind as ownership,
    bool_or(is_stalled) as is_stalled,
    false as is_time_ambiguous,
    -1 as load_sequence  -- the build knows which differ (temp.changed_inferred_holds)
from staging.stg_inferred_holds
group by job_run_key, cluster, kind, owner, submit_ms
