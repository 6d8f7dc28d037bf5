-- What to do with nodes of the scope that had errors, failed attempts, or memory whose remapping was read, by the limits of
-- reference.thresholds. Apart from marts.node_health, since findings ask for nothing else of it.
-- grain: cluster, node
-- skip_if_empty: marts.gpu_incidents, marts.failure_nodes, intermediate.int_error_reads
-- errors: incidents of hardware or driver; fatal_errors: of them those that stop the GPU or the node
-- remap_failed_gpus: GPUs whose memory can remap no more; null: not read
-- failed_attempts: attempts that ended in the window with an infrastructure cause that evidence puts on this node
-- code, last_at: Xid of the worst incident, the latest of equals; when the latest incident was
-- evidence_at: first of the remaps, memory errors or attempts that the verdict is for (counters: their hour); null: last_at
-- uncorrected_errors: of the GPU of the node that has most; corrected_per_h: most of one GPU in an hour; null: none
-- verdict: Replace, Drain, Watch by what there was in the last days of the window (threshold verdict_days); null: no rule
--  applies; verdict_reason: the rule that applies
-- what_to_do: the vendor's recommended action for the Xid; null where the verdict is to watch: one node has one advice
with recent as (
    select cluster, greatest(from_ms, to_ms - (threshold('verdict_days') * one_day_ms())::bigint) as since_ms
    from intermediate.int_cluster_windows
),

incidents as (
    select
        cluster,
        node,
        count(*) as errors,
        count(*) filter (where is_fatal) as fatal_errors,
        count(*) filter (where is_recent) as recent_errors,
        count(*) filter (where is_fatal and is_recent) as recent_fatal_errors,
        max(end_at) as last_at,
        arg_max(
            {'code': code, 'what_to_do': what_to_do},
            (coalesce(severity in ('gpu_fatal', 'node_fatal'), true), severity = 'node_fatal', start_at)
        ) as worst
    from (
        select
            *,
            severity in ('gpu_fatal', 'node_fatal') or kind in ('off_the_bus', 'reset_required') as is_fatal,
            end_at >= from_ms(since_ms) as is_recent
        from marts.gpu_incidents
        inner join recent using (cluster)
    )
    where class = 'hardware' and node is not null
    group by cluster, node
),

remaps as (
    select reads.cluster, reads.node, count(distinct flags.gpu_uuid) as remap_failed_gpus,
        min(flags.hour_ms) as first_ms
    from intermediate.int_error_reads as reads
    left join intermediate.int_error_rises as flags
        on reads.cluster = flags.cluster
        and reads.node = flags.node
        and reads.gpu_uuid = flags.gpu_uuid
        and reads.kind = flags.kind
        and flags.highest = 1
    where reads.kind = 'remap_failed' and in_place(reads.cluster, reads.node, reads.gpu_uuid, reads.gpu_model)
    group by reads.cluster, reads.node
),

failures as (
    select
        culprits.cluster,
        culprits.node,
        count(*) as failed_attempts,
        count(*) filter (where attempts.end_ms >= recent.since_ms) as recent_failed_attempts,
        min(attempts.end_ms) filter (where attempts.end_ms >= recent.since_ms) as first_ms
    from marts.failure_nodes as culprits
    inner join intermediate.int_attempts as attempts using (attempt_key)
    inner join recent on culprits.cluster = recent.cluster
    group by culprits.cluster, culprits.node
),

-- a node that was taken out since its last error was drained for it
taken_out as (
    select distinct incidents.cluster, incidents.node
    from incidents
    inner join marts.node_outages as outages using (cluster, node)
    where outages.end_at is null or outages.end_at >= incidents.last_at
),

memory as (
    select
        cluster,
        node,
        max(uncorrected) as uncorrected_errors,
        max(recent_uncorrected) as recent_uncorrected,
        min(first_ms) filter (where recent_uncorrected >= threshold('drain_uncorrected_errors')) as first_ms,
        max(corrected_per_h) as corrected_per_h
    from (
        select
            cluster,
            node,
            gpu_uuid,
            sum(rise) filter (where kind = 'ecc_uncorrected')::bigint as uncorrected,
            sum(rise) filter (where kind = 'ecc_uncorrected' and hour_ms >= since_ms)::bigint as recent_uncorrected,
            min(hour_ms) filter (where kind = 'ecc_uncorrected' and hour_ms >= since_ms) as first_ms,
            max(rise) filter (where kind = 'ecc_corrected')::bigint as corrected_per_h
        from intermediate.int_error_rises
        inner join recent using (cluster)
        where kind in ('ecc_uncorrected', 'ecc_corrected') and in_place(cluster, node, gpu_uuid, gpu_model)
        group by cluster, node, gpu_uuid
    )
    group by cluster, node
),

joined as (
    select
        cluster,
        node,
        coalesce(incidents.errors, 0) as errors,
        coalesce(incidents.fatal_errors, 0) as fatal_errors,
        remaps.remap_failed_gpus,
        coalesce(failures.failed_attempts, 0) as failed_attempts,
        incidents.worst.code as code,
        incidents.last_at,
        incidents.worst.what_to_do as what_to_do,
        coalesce(starts_with(incidents.worst.what_to_do, 'Drain') and incidents.recent_errors > 0, false)
        and taken_out.node is null as is_to_drain,
        memory.uncorrected_errors,
        memory.corrected_per_h,
        {
            errors: incidents.recent_errors, fatal: incidents.recent_fatal_errors,
            failed: failures.recent_failed_attempts, uncorrected: memory.recent_uncorrected
        } as recents,
        {remap: remaps.first_ms, memory: memory.first_ms, failure: failures.first_ms} as firsts
    from incidents
    full join remaps using (cluster, node)
    full join failures using (cluster, node)
    full join memory using (cluster, node)
    left join taken_out using (cluster, node)
)

select
    * exclude (is_to_drain, recents, firsts) replace (
        case
            when is_to_drain or remap_failed_gpus > 0 or recents.fatal >= threshold('drain_fatal_incidents') then what_to_do
        end as what_to_do
    ),
    case
        when remap_failed_gpus >= threshold('replace_remap_failed') then 'Replace'
        when recents.fatal >= threshold('drain_fatal_incidents') or is_to_drain then 'Drain'
        when recents.uncorrected >= threshold('drain_uncorrected_errors') then 'Drain'
        when recents.failed >= threshold('drain_failed_attempts') then 'Drain'
        when recents.errors >= threshold('watch_incidents') then 'Watch'
        when uncorrected_errors > 0 or corrected_per_h >= threshold('watch_corrected_errors') then 'Watch'
    end as verdict,
    case
        when remap_failed_gpus >= threshold('replace_remap_failed')
            then 'row remap failed on ' || counted(remap_failed_gpus, 'GPU')
        when recents.fatal >= threshold('drain_fatal_incidents')
            then counted(recents.fatal, 'error') || ' that stop GPU or node'
        when is_to_drain then counted(recents.errors, 'error') || ', of which one asks for it'
        when recents.uncorrected >= threshold('drain_uncorrected_errors')
            then counted(recents.uncorrected, 'uncorrected memory error') || ' of one GPU'
        when recents.failed >= threshold('drain_failed_attempts') then counted(recents.failed, 'failed attempt')
        when recents.errors >= threshold('watch_incidents') then counted(recents.errors, 'error')
        when uncorrected_errors > 0 then counted(uncorrected_errors, 'uncorrected memory error') || ' of one GPU'
        when corrected_per_h >= threshold('watch_corrected_errors')
            then counted(corrected_per_h, 'corrected memory error') || ' of one GPU in an hour'
    end as verdict_reason,
    from_ms(scope_start(
        case
            when remap_failed_gpus >= threshold('replace_remap_failed') then firsts.remap
            when recents.fatal >= threshold('drain_fatal_incidents') or is_to_drain then null
            when recents.uncorrected >= threshold('drain_uncorrected_errors') then firsts.memory
            when recents.failed >= threshold('drain_failed_attempts') then firsts.failure
        end
    )) as evidence_at
from joined
