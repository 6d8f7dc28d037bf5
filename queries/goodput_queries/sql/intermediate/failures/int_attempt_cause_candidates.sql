-- What may have ended an attempt badly, by the evidence that decides whose waste it is: what the scheduler, the job and
-- the GPUs say. The lowest place is the cause (intermediate.int_attempt_causes); what only explains it further is added in
-- marts.attempt_causes.
-- grain: attempt_key, place, sequence
-- place: the most specific first: hardware, the scheduler's word for a failure or a preemption, the job's, the scheduler's
-- sequence: among several of one place
-- cause: as it is shown; blame_cause: as it stands in reference.blame_by_cause
-- is_platform: the evidence names a failure of the infrastructure
-- confidence: Confirmed (the scheduler or a hardware Xid on a held GPU), Likely (the job said so), Not confirmed
with attempts as (
    select attempts.*, said.kind, said.msg, said.at_ms as said_ms
    from intermediate.int_failed_attempts as attempts
    left join intermediate.int_reported_failures as said using (attempt_key)
),

xids as (
    select *, row_number() over (partition by attempt_key order by place, cluster, node) as sequence
    from intermediate.int_attempt_xids
),

downed as (
    select attempt_key, arg_min(node, {at_ms: at_ms, node: node}) as node, min(at_ms) as at_ms
    from intermediate.int_attempt_down_nodes
    group by attempt_key
),

steps_oom as (
    select distinct runs.job_run_key
    from intermediate.int_job_runs as runs
    inner join staging.stg_job_steps as steps using (cluster, job_id_raw)
    where steps.state = 'OUT_OF_MEMORY' and steps.end_ms between runs.start_ms and runs.end_ms + 1000
),

-- whole hours: the counters are kept by hour
ecc as (
    select
        attempts.attempt_key,
        holds.cluster,
        holds.node,
        holds.gpu_uuid,
        sum(errors.errors)::bigint as errors,
        min(errors.hour_ms) as first_hour_ms,
        max(errors.hour_ms) + 3600000 as until_ms
    from attempts
    inner join (select distinct job_run_key, cluster, node, gpu_uuid from intermediate.int_holds) as holds
        using (job_run_key)
    inner join intermediate.int_uncorrected_errors as errors
        on holds.gpu_uuid = errors.gpu_uuid
        and errors.hour_ms + 3600000 > attempts.trouble_from_ms
        and errors.hour_ms <= attempts.end_ms
    group by attempts.attempt_key, holds.cluster, holds.node, holds.gpu_uuid
),

units as (
    select gpu_uuid, any_value(gpu_index) as gpu_index from intermediate.int_gpu_inventory group by gpu_uuid
),

not_finite as (
    select
        attempt_key,
        arg_max(loss, step) as last_loss,
        count(*) filter (where not isfinite(loss)) as steps,
        min(step) filter (where not isfinite(loss)) as first_step,
        min(at_ms) filter (where not isfinite(loss)) as at_ms
    from intermediate.int_step_losses
    semi join attempts using (attempt_key)
    group by attempt_key
),

-- what the job says of itself is not what ended it where the scheduler ended it
spoken as (
    select
        *,
        is_last_of_job_run and state = 'PREEMPTED' as is_preempted,
        -- of the host's memory; a job's message is about the GPU's
        is_last_of_job_run and state = 'OUT_OF_MEMORY' as is_out_of_memory,
        coalesce(is_last_of_job_run and state = 'REQUEUED' and msg ilike '%requeue%', false) as is_own_requeue,
        -- SIGTERM at a time limit or a cancellation looks like preemption to the job
        coalesce(
            kind = 'preempted' and is_last_of_job_run and state in ('TIMEOUT', 'CANCELLED', 'DEADLINE', 'REQUEUED'), false
        ) as is_ended_by_scheduler
    from attempts
),

candidates as (
    select
        attempt_key,
        case class when 'hardware' then 1 else 13 end as place,
        sequence,
        'Xid ' || code as cause,
        case class when 'hardware' then 'Xid' else 'application Xid' end as blame_cause,
        case class when 'hardware' then 'hardware' else 'user code' end as class,
        class = 'hardware' as is_platform,
        case class when 'hardware' then 'Confirmed' else 'Likely' end as confidence,
        sources || ': Xid ' || code || ' (' || coalesce(meaning, 'unknown') || ') on ' || node
        || case when gpus > 1 then ', ' || gpus || ' GPUs' else coalesce(' GPU ' || gpu_index, '') end
        || ', ' || counted(lines, 'line')
        || case when incidents > gpus then ' in ' || counted(incidents, 'incident') else '' end as evidence,
        action as what_to_do,
        node,
        case when gpus = 1 then gpu_uuid end as gpu_uuid,
        first_ms as at_ms,
        code
    from xids
    union all by name
    select
        attempt_key,
        2 as place,
        1 as sequence,
        state as cause,
        state as blame_cause,
        'node' as class,
        true as is_platform,
        'Confirmed' as confidence,
        'scheduler state ' || state || coalesce('; ' || downed.node || ' went down', '') as evidence,
        'Look at the node''s log before it returns to service' as what_to_do,
        downed.node,
        spoken.end_ms as at_ms
    from spoken
    left join downed using (attempt_key)
    where spoken.is_infrastructure
    union all by name
    select
        attempt_key,
        3 as place,
        1 as sequence,
        'nccl_timeout on a node that went down' as cause,
        'nccl_timeout on a node that went down' as blame_cause,
        'node' as class,
        true as is_platform,
        'Likely' as confidence,
        'job said: nccl_timeout; the scheduler saw ' || downed.node || ' go down meanwhile' as evidence,
        'Look at the node''s log before it returns to service' as what_to_do,
        downed.node,
        downed.at_ms
    from spoken
    inner join downed using (attempt_key)
    where spoken.kind = 'nccl_timeout'
    union all by name
    select
        attempt_key,
        4 as place,
        1 as sequence,
        'PREEMPTED' as cause,
        'PREEMPTED' as blame_cause,
        'scheduler' as class,
        false as is_platform,
        'Confirmed' as confidence,
        'scheduler state PREEMPTED' as evidence,
        end_ms as at_ms
    from spoken
    where is_preempted
    union all by name
    select
        attempt_key,
        case when is_out_of_memory then 5 else 11 end as place,
        1 as sequence,
        'OUT_OF_MEMORY' as cause,
        'OUT_OF_MEMORY' as blame_cause,
        'host memory' as class,
        false as is_platform,
        'Confirmed' as confidence,
        case when state = 'OUT_OF_MEMORY' then 'scheduler state ' else 'a step of the job ended ' end
        || 'OUT_OF_MEMORY: it exceeded the host memory it had asked for' as evidence,
        'Ask for more host memory (Slurm --mem, Kubernetes memory limit) or hold less in it' as what_to_do,
        end_ms as at_ms
    from spoken
    where is_out_of_memory or job_run_key in (select job_run_key from steps_oom)
    union all by name
    select
        attempt_key,
        6 as place,
        1 as sequence,
        'requeued by the job' as cause,
        'requeued by the job' as blame_cause,
        'scheduler' as class,
        false as is_platform,
        'Likely' as confidence,
        'job said: ' || kind || coalesce(' ' || left(msg, 120), '') as evidence,
        said_ms as at_ms
    from spoken
    where is_own_requeue
    union all by name
    select
        attempt_key,
        7 as place,
        1 as sequence,
        state as cause,
        state as blame_cause,
        'scheduler' as class,
        false as is_platform,
        case when state = 'REQUEUED' then 'Confirmed' else 'Likely' end as confidence,
        'scheduler state ' || state as evidence,
        end_ms as at_ms
    from spoken
    where is_ended_by_scheduler
    union all by name
    -- a job that says what it did wrong itself did not end by the GPU's error
    select
        ecc.attempt_key,
        case when kinds.class is null or kinds.class in ('hardware', 'network', 'unknown') or kinds.kind in (
            'cuda_error', 'segfault', 'sigabrt', 'runtime_error', 'exception', 'nan'
        ) then 8 else 12 end as place,
        row_number() over (partition by ecc.attempt_key order by ecc.errors desc, ecc.gpu_uuid) as sequence,
        'ECC errors' as cause,
        'ECC errors' as blame_cause,
        'hardware' as class,
        true as is_platform,
        'Likely' as confidence,
        counted(ecc.errors, 'uncorrected ECC error') || ' on ' || ecc.node || coalesce(' GPU ' || units.gpu_index, '')
        || ' between ' || strftime(from_ms(ecc.first_hour_ms), '%H:%M') || ' and '
        || strftime(from_ms(ecc.until_ms), '%H:%M') || ' UTC' as evidence,
        'Drain the GPU''s node, reset the GPU and run diagnostics' as what_to_do,
        ecc.node,
        ecc.gpu_uuid,
        greatest(ecc.first_hour_ms, spoken.trouble_from_ms) as at_ms
    from ecc
    inner join spoken using (attempt_key)
    left join units using (gpu_uuid)
    left join reference.failure_kinds as kinds on spoken.kind = kinds.kind
    union all by name
    select
        attempt_key,
        9 as place,
        1 as sequence,
        spoken.kind as cause,
        spoken.kind as blame_cause,
        coalesce(kinds.class, 'unknown') as class,
        spoken.kind = 'gpu_hardware' as is_platform,
        'Likely' as confidence,
        'job said: ' || spoken.kind || coalesce(' ' || left(spoken.msg, 120), '') as evidence,
        kinds.what_to_do,
        spoken.said_ms as at_ms
    from spoken
    left join reference.failure_kinds as kinds on spoken.kind = kinds.kind
    where spoken.kind is not null and not spoken.is_own_requeue and not spoken.is_ended_by_scheduler
    union all by name
    select
        attempt_key,
        14 as place,
        1 as sequence,
        'nan' as cause,
        'nan' as blame_cause,
        'numerics' as class,
        false as is_platform,
        'Likely' as confidence,
        'the last loss before the end is ' || not_finite.last_loss || '; it is not finite in '
        || counted(not_finite.steps, 'step') || ' from step ' || not_finite.first_step || ' on' as evidence,
        kinds.what_to_do,
        not_finite.at_ms
    from spoken
    inner join not_finite using (attempt_key)
    inner join reference.failure_kinds as kinds on kinds.kind = 'nan'
    where not isfinite(not_finite.last_loss)
    union all by name
    -- what the scheduler's state or a restart says where nothing else is known
    select
        attempt_key,
        90 as place,
        1 as sequence,
        case
            when is_last_of_job_run and outcome = 'failed' and state = 'REQUEUED' then 'FAILED'
            when not is_last_of_job_run or (outcome = 'failed' and state = 'COMPLETED') then 'restarted inside its job'
            else state
        end as cause,
        cause as blame_cause,
        case
            when cause in ('TIMEOUT', 'CANCELLED', 'DEADLINE', 'REQUEUED', 'REVOKED', 'PREEMPTED') then 'scheduler'
            else 'unknown'
        end as class,
        false as is_platform,
        case when cause = 'REQUEUED' then 'Confirmed' else 'Not confirmed' end as confidence,
        case
            when cause = state then 'scheduler state ' || state
            when cause = 'FAILED' then 'the job ended with an exit code of its own before it was requeued'
            when not is_last_of_job_run
                then 'another life of the processes began in the same job; nothing says why this one ended'
            else 'scheduler state ' || state
        end as evidence,
        end_ms as at_ms
    from spoken
)

select
    candidates.attempt_key,
    candidates.place,
    candidates.sequence,
    candidates.cause,
    candidates.blame_cause,
    candidates.class,
    candidates.is_platform,
    candidates.confidence,
    candidates.evidence,
    candidates.what_to_do,
    candidates.node,
    candidates.gpu_uuid,
    candidates.at_ms,
    candidates.code
from candidates
where candidates.cause is not null
