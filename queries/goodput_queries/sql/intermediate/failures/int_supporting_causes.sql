-- What else explains why an attempt of the scope ended badly: it does not decide whose waste it is.
-- grain: attempt_key, place, sequence
-- evaluated: first
-- place: those of intermediate.int_attempt_cause_candidates go from 1 to 20 and, without any other, 90
-- evidence_against: what speaks against it, where something does
with attempts as (select * from intermediate.int_failed_attempts_in_scope),

hangs as (
    select
        attempts.attempt_key,
        hangs.*,
        row_number() over (
            partition by attempts.attempt_key order by hangs.is_root desc, hangs.since_at, hangs.hang_key
        ) as sequence
    from marts.hangs as hangs
    inner join attempts using (run_key, attempt)
    where epoch_ms(hangs.last_seen_at) >= attempts.trouble_from_ms
),

anomalies as (
    select found.*
    from marts.loss_anomalies as found
    inner join attempts using (attempt_key)
    where found.kind = 'diverged' and found.is_lasting
),

counters as (
    select
        *,
        case kind
            when 'remap_failed' then 1 when 'ecc_uncorrected' then 2 when 'row_remap' then 3 when 'nvlink' then 4
            when 'thermal' then 5 else 6
        end as kind_place,
        count(*) over (partition by attempt_key, kind) as gpus,
        row_number() over (partition by attempt_key, kind order by rise desc, gpu_uuid) as sequence
    from intermediate.int_failure_counters
    where kind <> 'thermal' or rise >= threshold('cause_thermal_s')
),

links as (
    select distinct on (gpus.attempt_key, events.node, events.device, events.port)
        gpus.attempt_key,
        events.node,
        events.device,
        events.port,
        epoch_ms(events.start_at) as at_ms,
        events.end_at
    from marts.link_events as events
    inner join (select distinct attempt_key, trouble_from_ms, trouble_until_ms, cluster, node from intermediate.int_failure_gpus) as gpus
        on events.cluster = gpus.cluster
        and events.node = gpus.node
        and epoch_ms(events.start_at) between gpus.trouble_from_ms and gpus.trouble_until_ms
    order by events.start_at
)

select
    attempts.attempt_key,
    30 as place,
    hangs.sequence,
    'hang' as cause,
    'network' as class,
    hangs.confidence,
    hangs.evidence
    || case when hangs.culprit_ranks is not null then '; behind: rank ' || array_to_string(hangs.culprit_ranks[:8], ', ') else '' end
        as evidence,
    case when not hangs.is_root then 'each rank that is behind waits in another hang itself' end as evidence_against,
    'Look at the rank that is behind: its exception, its Xid, its host' as what_to_do,
    hangs.culprit_node as node,
    hangs.culprit_gpu_uuid as gpu_uuid,
    epoch_ms(hangs.since_at) as at_ms
from hangs
inner join attempts using (attempt_key)
where hangs.sequence <= 3
union all by name
select
    attempts.attempt_key,
    31 as place,
    row_number() over (partition by attempts.attempt_key order by downed.at_ms, downed.node) as sequence,
    'node down' as cause,
    'node' as class,
    'Likely' as confidence,
    'the scheduler saw ' || downed.node || ' go down' || coalesce(': ' || left(downed.reason, 120), '') as evidence,
    'Look at the node''s log before it returns to service' as what_to_do,
    downed.node,
    downed.at_ms
from attempts
inner join intermediate.int_attempt_down_nodes as downed using (attempt_key)
where not attempts.is_infrastructure and attempts.said_kind is distinct from 'nccl_timeout'
union all by name
select
    links.attempt_key,
    32 as place,
    row_number() over (partition by links.attempt_key order by links.at_ms, links.node, links.device) as sequence,
    'link down' as cause,
    'network' as class,
    'Likely' as confidence,
    'the link of ' || links.device || coalesce(' port ' || links.port, '') || ' of ' || links.node || ' was down'
        as evidence,
    'Check cable, transceiver and switch port' as what_to_do,
    links.node,
    links.at_ms
from links
union all by name
select
    counters.attempt_key,
    32 + counters.kind_place as place,
    counters.sequence,
    case counters.kind
        when 'remap_failed' then 'row remap failed' when 'ecc_uncorrected' then 'ECC errors'
        when 'row_remap' then 'row remaps' when 'nvlink' then 'NVLink errors' when 'pcie' then 'PCIe replays'
        else 'thermal slowdown'
    end as cause,
    'hardware' as class,
    case when counters.kind in ('remap_failed', 'ecc_uncorrected') then 'Likely' else 'Not confirmed' end as confidence,
    case counters.kind
        when 'remap_failed' then 'a row of memory could not be remapped'
        when 'ecc_uncorrected' then counted(counters.rise::bigint, 'uncorrected ECC error')
        when 'row_remap' then counted(counters.rise::bigint, 'row remap')
        when 'nvlink' then counted(counters.rise::bigint, 'NVLink error')
        when 'pcie' then counters.rise::bigint || ' PCIe packets were sent again'
        else round(counters.rise)::bigint || ' s of thermal slowdown'
    end
    || ' on ' || counters.node || coalesce(' GPU ' || counters.gpu_index, '')
    || case when counters.gpus > 3 and counters.sequence = 3 then ', and some on ' || (counters.gpus - 3) || ' more GPUs' else '' end
    || ' between ' || strftime(from_ms(counters.first_ms), '%H:%M') || ' and '
    || strftime(from_ms(counters.until_ms), '%H:%M') || ' UTC' as evidence,
    case
        when counters.other_hours > 0
            then 'it rose in ' || counted(counters.other_hours, 'other hour') || ' of the time range as well'
    end as evidence_against,
    case counters.kind
        when 'remap_failed' then 'Replace the GPU'
        when 'thermal' then 'Check cooling and air flow of the node'
        when 'nvlink' then 'Run the vendor''s diagnostics of the links; look for Xid 74'
        when 'pcie' then 'Reseat or replace the GPU if the replays continue'
        else 'Reset the GPU at the next maintenance and run diagnostics'
    end as what_to_do,
    counters.node,
    counters.gpu_uuid,
    counters.first_ms as at_ms
from counters
where counters.sequence <= 3
union all by name
select
    anomalies.attempt_key,
    40 as place,
    1 as sequence,
    'loss diverged' as cause,
    'numerics' as class,
    'Not confirmed' as confidence,
    'the loss was over ' || round(threshold('diverged_ratio')) || ' times its median of ' || round(anomalies.baseline_loss, 3)
    || ' from step ' || anomalies.step || ' on' as evidence,
    'Restart from a checkpoint before the step; check learning rate and data' as what_to_do,
    epoch_ms(anomalies.step_at) as at_ms
from anomalies
