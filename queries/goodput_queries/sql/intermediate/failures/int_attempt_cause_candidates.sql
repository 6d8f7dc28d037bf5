-- What may have ended an attempt badly, by the evidence that decides whose waste it is: what the scheduler, the job and
-- the GPUs say. The lowest place is the cause (intermediate.int_attempt_causes); what only explains it further is added in
-- marts.attempt_causes.
-- grain: attempt_key, place, sequence
-- evaluated: first
-- skip_if_empty: intermediate.int_attempts
-- place: the most specific first: hardware, the scheduler's word for a failure or a preemption, the job's, the scheduler's
-- sequence: among several of one place
-- cause: as it is shown; blame_cause: as it stands in reference.blame_by_cause
-- is_platform: the evidence names a failure of the infrastructure
-- confidence: Confirmed (the scheduler or a hardware Xid on a GPU of the attempt), Likely (the job said so), Not confirmed
-- at_ms: when it was first seen; code: of an Xid
with downed as (
    select attempt_key, arg_min(node, {at_ms: at_ms, node: node}) as node, min(at_ms) as at_ms
    from intermediate.int_attempt_down_nodes
    group by attempt_key
),

-- a kill may be of another job on the node
killed as (
    select
        attempt_key,
        arg_min(node, {at_ms: at_ms, node: node}) as node,
        arg_min(process_name, {at_ms: at_ms, node: node}) as process_name,
        sum(kills)::bigint as kills,
        min(at_ms) as at_ms
    from intermediate.int_attempt_oom_kills
    group by attempt_key
),

steps_oom as (
    select distinct runs.job_run_key
    from intermediate.int_job_runs as runs
    inner join staging.stg_job_steps as steps using (cluster, job_id_raw)
    where steps.state = 'OUT_OF_MEMORY' and steps.end_ms between runs.start_ms and runs.end_ms + 1000
),

last_losses as (
    select
        attempt_key,
        arg_max(loss, step) as loss,
        count(*) filter (where not isfinite(loss)) as steps,
        min(step) filter (where not isfinite(loss)) as first_step,
        min(at_ms) filter (where not isfinite(loss)) as at_ms
    from intermediate.int_step_losses
    semi join intermediate.int_failed_attempts using (attempt_key)
    group by attempt_key
    having not isfinite(arg_max(loss, step))
),

attempts as (
    select
        attempts.*,
        said.kind,
        left(said.msg, 120) as msg,
        -- a log without times was read out after the end
        least(said.at_ms, attempts.end_ms) as said_ms,
        kinds.class as kind_class,
        kinds.what_to_do as kind_fix,
        downed.node as downed_node,
        downed.at_ms as downed_ms,
        killed.node as killed_node,
        killed.process_name as killed_name,
        killed.kills,
        killed.at_ms as killed_ms,
        steps_oom.job_run_key is not null as is_step_oom,
        last_losses.loss as last_loss,
        last_losses.steps as lossless_steps,
        last_losses.first_step as lossless_from,
        last_losses.at_ms as lossless_ms,
        -- of the host's memory; a job's message is about the GPU's
        attempts.is_last_of_job_run and attempts.state = 'OUT_OF_MEMORY' as is_out_of_memory,
        coalesce(
            attempts.is_last_of_job_run and attempts.state = 'REQUEUED' and said.msg ilike '%requeue%', false
        ) as is_own_requeue,
        -- SIGTERM at a time limit or a cancellation looks like preemption to the job
        coalesce(
            said.kind in ('preempted', 'cancelled', 'time_limit') and attempts.is_last_of_job_run
            and attempts.state in ('TIMEOUT', 'CANCELLED', 'DEADLINE', 'REQUEUED'), false
        ) as is_ended_by_scheduler,
        -- what the state or a restart says where nothing else is known
        case
            when attempts.is_last_of_job_run and attempts.outcome = 'failed' and attempts.state = 'REQUEUED' then 'FAILED'
            when not attempts.is_last_of_job_run or (attempts.outcome = 'failed' and attempts.state = 'COMPLETED')
                then 'restarted inside its job'
            else attempts.state
        end as ending
    from intermediate.int_failed_attempts as attempts
    left join intermediate.int_reported_failures as said using (attempt_key)
    left join reference.failure_kinds as kinds on said.kind = kinds.kind
    left join downed using (attempt_key)
    left join killed using (attempt_key)
    left join steps_oom using (job_run_key)
    left join last_losses using (attempt_key)
),

of_attempts as (
    select
        attempt_key,
        unnest([
            case when is_infrastructure then {
                place: 2, cause: state, blame_cause: state, class: 'node', is_platform: true, confidence: 'Confirmed',
                evidence: 'scheduler state ' || state || coalesce('; ' || downed_node || ' went down', ''),
                what_to_do: 'Look at the log of the node before it returns to service',
                node: downed_node, at_ms: end_ms
            } end,
            case when kind = 'nccl_timeout' and downed_node is not null then {
                place: 3, cause: 'nccl_timeout on a node that went down',
                blame_cause: 'nccl_timeout on a node that went down', class: 'node', is_platform: true,
                confidence: 'Likely',
                evidence: 'job said: nccl_timeout; the scheduler saw ' || downed_node || ' go down meanwhile',
                what_to_do: 'Look at the log of the node before it returns to service',
                node: downed_node, at_ms: downed_ms
            } end,
            case when is_last_of_job_run and state = 'PREEMPTED' then {
                place: 4, cause: state, blame_cause: state, class: 'scheduler', is_platform: false,
                confidence: 'Confirmed', evidence: 'scheduler state PREEMPTED',
                what_to_do: null, node: null, at_ms: end_ms
            } end,
            case when is_out_of_memory or is_step_oom then {
                place: case when is_out_of_memory then 5 else 10 end, cause: 'OUT_OF_MEMORY',
                blame_cause: 'OUT_OF_MEMORY', class: 'host memory', is_platform: false, confidence: 'Confirmed',
                evidence: case when state = 'OUT_OF_MEMORY' then 'scheduler state ' else 'a step of the job ended ' end
                    || 'OUT_OF_MEMORY: it exceeded the host memory it had asked for',
                what_to_do: 'Ask for more host memory (Slurm --mem, Kubernetes memory limit) or hold less in it',
                node: null, at_ms: end_ms
            } end,
            case when is_own_requeue then {
                place: 6, cause: 'requeued by the job', blame_cause: 'requeued by the job', class: 'scheduler',
                is_platform: false, confidence: 'Likely', evidence: 'job said: ' || kind || coalesce(' ' || msg, ''),
                what_to_do: null, node: null, at_ms: said_ms
            } end,
            case when is_ended_by_scheduler then {
                place: 7, cause: state, blame_cause: state, class: 'scheduler', is_platform: false,
                confidence: case when state = 'REQUEUED' then 'Confirmed' else 'Likely' end,
                evidence: 'scheduler state ' || state, what_to_do: null, node: null, at_ms: end_ms
            } end,
            case when killed_node is not null then {
                -- the job sees the end of a process, not what ended it
                place: case
                    when coalesce(kind, 'sigkill') in ('sigkill', 'nccl_timeout', 'nccl_error', 'network', 'exception', 'other')
                        then 8
                    else 11
                end,
                cause: 'host_memory', blame_cause: 'host_memory', class: 'host memory', is_platform: false,
                confidence: 'Likely',
                evidence: 'kernel log: the out-of-memory killer ended ' || coalesce(nullif(killed_name, ''), 'a process')
                    || ' on ' || killed_node || case when kills > 1 then ' and ' || (kills - 1) || ' more' else '' end,
                what_to_do: 'Ask for more host memory (Slurm --mem, Kubernetes memory limit) or hold less in it',
                node: killed_node, at_ms: killed_ms
            } end,
            case when kind is not null and not is_own_requeue and not is_ended_by_scheduler then {
                place: 9, cause: kind, blame_cause: kind, class: coalesce(kind_class, 'unknown'),
                is_platform: kind in ('gpu_hardware', 'node_fail'), confidence: 'Likely',
                evidence: 'job said: ' || kind || coalesce(' ' || msg, ''),
                what_to_do: kind_fix, node: null, at_ms: said_ms
            } end,
            case when last_loss is not null then {
                place: 13, cause: 'nan', blame_cause: 'nan', class: 'numerics', is_platform: false,
                confidence: 'Likely',
                evidence: 'the last loss before the end is ' || last_loss || '; it is not finite in '
                    || counted(lossless_steps, 'step') || ' from step ' || lossless_from || ' on',
                what_to_do: 'Restart from a checkpoint before the step; check learning rate, data and precision',
                node: null, at_ms: lossless_ms
            } end,
            case when ending is not null then {
                place: 90, cause: ending, blame_cause: ending,
                class: case
                    when ending in ('TIMEOUT', 'CANCELLED', 'DEADLINE', 'REQUEUED', 'REVOKED', 'PREEMPTED') then 'scheduler'
                    else 'unknown'
                end,
                is_platform: false,
                confidence: case when ending = 'REQUEUED' then 'Confirmed' else 'Not confirmed' end,
                evidence: case
                    when ending = 'FAILED' and state <> 'FAILED'
                        then 'the job ended with an exit code of its own before it was requeued'
                    when not is_last_of_job_run
                        then 'the processes were started again in the same job; nothing says why these ended'
                    else 'scheduler state ' || state
                end,
                what_to_do: null, node: null, at_ms: end_ms
            } end
        ]) as found
    from attempts
),

-- whole hours: the counters are kept by hour
ecc as (
    select
        attempts.attempt_key,
        holds.node,
        holds.gpu_uuid,
        any_value(attempts.trouble_from_ms) as trouble_from_ms,
        -- a job that says what it did wrong itself did not end by the error of the GPU
        any_value(
            attempts.kind_class is null
            or attempts.kind_class in ('hardware', 'network', 'unknown')
            or attempts.kind in ('cuda_error', 'segfault', 'sigabrt', 'runtime_error', 'exception', 'nan')
        ) as is_decisive,
        sum(errors.errors)::bigint as errors,
        min(errors.hour_ms) as first_hour_ms,
        max(errors.hour_ms) + one_hour_ms() as until_ms
    from intermediate.int_uncorrected_errors as errors
    inner join (
        select distinct job_run_key, node, gpu_uuid
        from intermediate.int_holds
        semi join intermediate.int_uncorrected_errors using (gpu_uuid)
    ) as holds using (gpu_uuid)
    inner join attempts
        on holds.job_run_key = attempts.job_run_key
        and errors.hour_ms + one_hour_ms() > attempts.trouble_from_ms
        and errors.hour_ms <= attempts.end_ms
    group by attempts.attempt_key, holds.node, holds.gpu_uuid
),

units as (
    select gpu_uuid, any_value(gpu_index) as gpu_index from intermediate.int_gpu_inventory group by gpu_uuid
)

select
    attempt_key,
    unnest(found),
    1::bigint as sequence,
    null::varchar as gpu_uuid,
    null::integer as code
from of_attempts
where found is not null
union all by name
select
    attempt_key,
    case class when 'hardware' then 1 else 12 end as place,
    row_number() over (partition by attempt_key order by place, cluster, node) as sequence,
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
from intermediate.int_attempt_xids
union all by name
select
    ecc.attempt_key,
    case when ecc.is_decisive then 8 else 11 end as place,
    row_number() over (partition by ecc.attempt_key order by ecc.errors desc, ecc.gpu_uuid) as sequence,
    'ECC errors' as cause,
    'ECC errors' as blame_cause,
    'hardware' as class,
    true as is_platform,
    'Likely' as confidence,
    counted(ecc.errors, 'uncorrected ECC error') || ' on ' || ecc.node || coalesce(' GPU ' || units.gpu_index, '')
    || ' between ' || strftime(from_ms(ecc.first_hour_ms), '%H:%M') || ' and '
    || strftime(from_ms(ecc.until_ms), '%H:%M') || ' UTC' as evidence,
    'Drain the node of the GPU, reset the GPU and run diagnostics' as what_to_do,
    ecc.node,
    ecc.gpu_uuid,
    greatest(ecc.first_hour_ms, ecc.trouble_from_ms) as at_ms
from ecc
left join units using (gpu_uuid)
