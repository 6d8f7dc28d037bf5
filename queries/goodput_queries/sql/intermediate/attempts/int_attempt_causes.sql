-- Why an attempt ended badly, as far as evidence goes: what the scheduler, the job and the GPUs said.
-- grain: attempt_key
-- is_platform: the evidence names a failure of the infrastructure
-- blame, is_credited: of the cause, by reference.blame_by_cause; a cause it does not list is the job's own
-- trouble_from_ms: from when on an error may be its cause: five minutes before the end, or the start of its stall
-- fix: what to do against it, where that is known (an Xid's recommended action)
-- confidence: Confirmed (the scheduler or a hardware Xid on a held GPU), Likely (the job said so), Not confirmed
with attempts as (
    select
        attempts.*,
        -- a watchdog ends a hung attempt many minutes after what hung it
        least(attempts.end_ms - 300000, coalesce(stalls.start_ms, attempts.end_ms)) as trouble_from_ms
    from intermediate.int_attempts as attempts
    left join (
        select attempt_key, max(start_ms) as start_ms
        from intermediate.int_run_timeline
        where 'fault_stall' in (category, phase)
        group by attempt_key
    ) as stalls using (attempt_key)
    where attempts.outcome in ('failed', 'limit')
),

-- two sources may report one Xid: they are counted apart
xids_by_source as (
    select
        attempts.attempt_key,
        events.source,
        arg_min(events.code, events.ts) as code,
        arg_min(codes.meaning, events.ts) as meaning,
        arg_min(codes.recommended_action, events.ts) as action,
        arg_min(events.node, events.ts) as node,
        min(events.ts) as first_at,
        count(*) as n
    from attempts
    inner join intermediate.int_holds as holds using (job_run_key)
    inner join intermediate.int_gpu_inventory as gpus on holds.gpu_uuid = gpus.gpu_uuid
    inner join staging.stg_gpu_errors as events
        on (events.gpu_uuid = gpus.gpu_uuid
            or (events.gpu_uuid is null and events.node = gpus.node and events.pci_bus_id = gpus.pci_bus_id))
        -- an Xid within five minutes before the end, in the stall before it or a minute after it may be its cause
        and events.ts_ms between attempts.trouble_from_ms and attempts.end_ms + 60000
    inner join reference.xid_codes as codes
        on events.code = codes.xid
        and (
            codes.severity in ('gpu_fatal', 'node_fatal')
            or (codes.severity = 'job_fatal' and codes.fault_domain = 'hardware')
        )
    group by attempts.attempt_key, events.source
),

xids as (
    select
        attempt_key,
        arg_min(code, first_at) as code,
        arg_min(meaning, first_at) as meaning,
        arg_min(action, first_at) as action,
        arg_min(node, first_at) as node,
        max(n) as n,
        string_agg(replace(source, '-', ' '), ' and ' order by source) as sources
    from xids_by_source
    group by attempt_key
),

said as (select * from intermediate.int_reported_failures),

steps_oom as (
    select distinct runs.job_run_key
    from intermediate.int_job_runs as runs
    inner join staging.stg_job_steps as steps using (cluster, job_id_raw)
    where steps.state = 'OUT_OF_MEMORY' and steps.end_ms between runs.start_ms and runs.end_ms + 1000
),

downed as (
    select attempts.attempt_key, min(states.node) as node
    from attempts
    inner join said using (attempt_key)
    inner join intermediate.int_holds as holds using (job_run_key)
    inner join staging.stg_node_states as states
        on holds.cluster = states.cluster
        and holds.node = states.node
        and states.state = 'down'
        and states.start_ms between attempts.trouble_from_ms and attempts.end_ms + 60000
    where said.kind = 'nccl_timeout'
    group by attempts.attempt_key
),

-- the most specific first: hardware, the scheduler's word for a failure or a preemption, the job's, the scheduler's
found as (
    select
        attempts.attempt_key,
        attempts.state,
        attempts.is_last_of_job_run,
        attempts.is_infrastructure,
        attempts.trouble_from_ms,
        xids.code,
        xids.meaning,
        xids.action,
        xids.node,
        xids.n,
        xids.sources,
        said.kind,
        said.msg,
        downed.node as downed_node,
        case
            when xids.code is not null then 'Xid'
            when attempts.is_infrastructure then attempts.state
            when downed.node is not null then 'nccl_timeout on a node that went down'
            when attempts.is_last_of_job_run and attempts.state = 'PREEMPTED' then 'PREEMPTED'
            -- of the host's memory; a job's message is about the GPU's
            when attempts.is_last_of_job_run and attempts.state = 'OUT_OF_MEMORY' then 'OUT_OF_MEMORY'
            when attempts.is_last_of_job_run and attempts.state = 'REQUEUED' and said.msg ilike '%requeue%'
                then 'requeued by the job'
            -- SIGTERM at a time limit or a cancellation looks like preemption to the job
            when
                said.kind = 'preempted' and attempts.is_last_of_job_run
                and attempts.state in ('TIMEOUT', 'CANCELLED', 'DEADLINE', 'REQUEUED')
                then attempts.state
            when said.kind is not null then said.kind
            when steps_oom.job_run_key is not null then 'OUT_OF_MEMORY'
            when attempts.is_last_of_job_run and attempts.outcome = 'failed' and attempts.state = 'REQUEUED' then 'FAILED'
            when not attempts.is_last_of_job_run or (attempts.outcome = 'failed' and attempts.state = 'COMPLETED')
                then 'restarted inside its job'
            else attempts.state
        end as cause,
        steps_oom.job_run_key is not null as is_step_oom
    from attempts
    left join xids using (attempt_key)
    left join said using (attempt_key)
    left join downed using (attempt_key)
    left join steps_oom using (job_run_key)
)

select
    found.attempt_key,
    case when found.cause = 'Xid' then 'Xid ' || found.code else found.cause end as cause,
    found.code is not null or found.is_infrastructure or found.downed_node is not null as is_platform,
    found.trouble_from_ms,
    coalesce(blames.blame, 'own') as blame,
    coalesce(blames.is_credited::boolean, false) as is_credited,
    case
        when
            found.cause in ('Xid', 'PREEMPTED', 'REQUEUED', 'OUT_OF_MEMORY') or found.is_infrastructure
            then 'Confirmed'
        when found.kind is not null then 'Likely'
        else 'Not confirmed'
    end as confidence,
    case
        when found.cause = 'Xid'
            then found.sources || ': Xid ' || found.code || ' (' || coalesce(found.meaning, 'unknown') || ') on '
                || coalesce(found.node, '?') || ', ' || found.n || ' line(s)'
        when found.downed_node is not null
            then 'job said: nccl_timeout; the scheduler saw ' || found.downed_node || ' go down meanwhile'
        when found.cause = 'OUT_OF_MEMORY'
            then case when found.state = 'OUT_OF_MEMORY' then 'scheduler state ' else 'a step of the job ended ' end
                || 'OUT_OF_MEMORY: it exceeded the host memory it had asked for'
        when found.cause = found.state then 'scheduler state ' || found.state
        when found.cause = 'FAILED' then 'the job ended with an exit code of its own before it was requeued'
        when found.kind is not null then 'job said: ' || found.kind || coalesce(' ' || left(found.msg, 120), '')
        when not found.is_last_of_job_run
            then 'another life of the processes began in the same job; nothing says why this one ended'
        else 'scheduler state ' || found.state
    end as evidence,
    case
        when found.cause = 'Xid' then found.action
        when found.cause = 'OUT_OF_MEMORY' then 'Ask for more host memory (Slurm --mem, Kubernetes memory limit) or hold less in it'
    end as fix
from found
left join reference.blame_by_cause as blames on blames.applies_to = 'ending' and found.cause = blames.cause
