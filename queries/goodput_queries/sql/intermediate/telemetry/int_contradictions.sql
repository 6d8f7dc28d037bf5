-- Contradictions and gaps in the evidence that do not depend on whose time the scope has: marts.data_quality has them with
-- those of the ledger, and without kinds that have no case. Of the scope's window and cluster alone.
-- grain: kind, what
-- evaluated: first
-- n, what_to_do, gpu_ms, example: as in marts.data_quality
select
    'overlapping holds' as kind,
    'two job runs claimed one GPU at one time; the later start has it' as what,
    count(*) as n,
    sum(coalesce(end_ms, start_ms) - start_ms) as gpu_ms,
    min(job_run_key || ' lost to ' || kept_by) as example,
    'Expected for resized jobs of Slurm before 23; else look at the accounting' as what_to_do
from intermediate.int_hold_conflicts
union all
select
    'unmatched job events', arg_max(reason, n), sum(n), null, arg_max(example, n), arg_max(what_to_do, n)
from (
    select
        reasons.reason, reasons.what_to_do, count(*) as n,
        min(run_id || ' attempt ' || attempt || coalesce(' (cluster ' || other_cluster || ')', '')) as example
    from (
        select
            lives.run_id,
            lives.attempt,
            others.cluster as other_cluster,
            case
                when named.run_id is not null then 'job_elsewhere'
                when others.run_id is not null then 'other_cluster'
                when lives.hosts is null and lives.gpu_uuids is null then 'no_host'
                when not exists (
                    select 1 from intermediate.int_gpu_units as units
                    where list_contains(lives.hosts, units.node) or list_contains(lives.gpu_uuids, units.gpu_uuid)
                ) then 'unknown_host'
                when not exists (
                    select 1 from intermediate.int_holds as holds
                    where
                        holds.start_ms < lives.last_ms
                        and coalesce(holds.end_ms, forever_ms()) > lives.first_ms
                        and (list_contains(lives.hosts, holds.node) or list_contains(lives.gpu_uuids, holds.gpu_uuid))
                ) then 'no_hold'
                else 'several'
            end as code
        from intermediate.int_event_lives as lives
        left join (
            select distinct cluster, unnest([job_id, job_id_raw, job_name]) as run_id from intermediate.int_job_runs
        ) as named on lives.cluster = named.cluster and lives.run_id = named.run_id and lives.run_id <> ''
        left join (
            select run_id, min(cluster) as cluster
            from (select cluster, unnest([job_id, job_id_raw]) as run_id from intermediate.int_job_runs)
            group by run_id
        ) as others on lives.run_id = others.run_id and lives.hosts is null
        where lives.job_run_key is null
    ) as unmatched
    inner join (values
        (
            'other_cluster', 'a run has the id of a job of another cluster: its file names no cluster',
            'Ingest the file again with `--cluster`, after `goodput forget FILE`'
        ),
        (
            'job_elsewhere', 'the job that a run names ran on other nodes, or not within 15 minutes of its events',
            'Compare `host` and `ts` of the events with the scheduler''s record; name another start by its job id'
        ),
        (
            'no_host', 'a run''s events name neither a known job nor a host or GPU',
            'Set RUN_ID to the scheduler''s job id or job name, or write `host` into each event; of a log: `goodput forget FILE`, '
            || 'then ingest it with `--node NAME`'
        ),
        (
            'unknown_host', 'a run''s events name a host that is in no inventory and no job record',
            'Write the node''s name as the scheduler does into `host`, or ingest an inventory that has it'
        ),
        (
            'no_hold', 'no job was allocated GPUs of the host that a run''s events name at that time',
            'Ingest the accounting of that time, or such a machine with its own --cluster; else compare clocks of host and scheduler'
        ),
        (
            'several', 'several jobs were allocated GPUs of the host that a run''s events name at that time',
            'Set RUN_ID to the scheduler''s job id or job name, or write `gpu_uuid` into each event'
        )
    ) as reasons (code, reason, what_to_do) using (code)
    group by reasons.reason, reasons.what_to_do
)
union all
select
    'clocks that disagree',
    'most jobs of a host report events off their allocation by a like amount; nothing is shifted',
    count(*), null,
    arg_max(host || ': ' || printf('%+d', (off_ms / 1000)::bigint) || ' s on ' || lives || ' attempts', (abs(off_ms), host)),
    'Synchronise the clock of the host with the scheduler''s (chrony, NTP); for logs in local time correct `timezone` of '
    || 'their source in goodput.toml and ingest them again'
from (
    select host, median(off_ms) as off_ms, count(*) as lives
    from (
        select
            unnest(lives.hosts) as host,
            case
                when lives.last_ms - job_runs.record_end_ms >= job_runs.start_ms - lives.first_ms
                    then greatest(0, lives.last_ms - job_runs.record_end_ms)
                else least(0, lives.first_ms - job_runs.start_ms)
            end as off_ms
        from intermediate.int_event_lives as lives
        inner join intermediate.int_job_runs as job_runs using (job_run_key)
        where lives.match in ('job_id', 'job_name') and job_runs.record_end_ms is not null
    )
    group by host
    having
        abs(median(off_ms)) >= threshold('clock_offset_min_ms')
        -- of a like amount: half of them within a quarter of it
        and quantile_cont(off_ms, 0.75) - quantile_cont(off_ms, 0.25) <= abs(median(off_ms)) / 4
)
union all
select
    'clocks that disagree',
    'two sources report the same steps of a run at different times; the times of job events count, else of the more '
    || 'structured log',
    count(*), null,
    arg_max(attempt_key || ': ' || printf('%+d', (off_ms / 1000)::bigint) || ' s', (abs(off_ms), attempt_key)),
    'Correct `timezone` of the log''s source in goodput.toml, or the clock of its host, and ingest it again'
from (
    select attempt_key, median(other_off_ms) as off_ms
    from intermediate.int_rank_steps
    where other_off_ms is not null
    group by attempt_key
)
where abs(off_ms) >= threshold('clock_offset_min_ms')
union all
select
    'clocks that disagree',
    'two sources name a run differently and report the same steps at different times: counted as two attempts',
    count(distinct job_run_key), null,
    arg_max(
        job_run_key || ': ' || other_run_id || ' (' || other_source_kind || ') '
        || printf('%+d', (off_ms / 1000)::bigint) || ' s from ' || run_id || ' (' || source_kind || ')',
        (abs(off_ms), attempt_key)
    ),
    'Correct `timezone` of the log''s source in goodput.toml, or the clock of its host, and ingest it again; if the job did '
    || 'start again, let both sources report all of it'
from marts.attempts_reported_twice
union all
select
    'instruments that disagree',
    'two instruments report the ' || fact || ' differently',
    count(*), null, min(subject || ': ' || said),
    case fact
        when 'outcome' then 'Let the command of the job end with the exit code of its program, so that the scheduler fails it'
        when 'energy of a GPU' then 'Compare `nvidia-smi -q -d POWER` with the readings; prefer the source that agrees'
        else 'Check which server and which power supplies the meter of this node measures'
    end
from marts.disagreeing_instruments
group by fact
union all
select
    'GPUs placed by assumption', if(ownership = 'job_event',
        'no record names the GPUs: as many are counted as processes that events or log name, else one',
        'the accounting does not report which GPUs: allocated time is exact, which of it was used is not'),
    count(distinct job_run_key), null, min(job_run_key),
    if(ownership = 'job_event',
        'Ingest the accounting or lists of processes (source nvml), or let `goodput run` start such jobs',
        'Ingest `scontrol show job -d` while jobs run; or let the DCGM exporter label series with jobs (hpc_job) or pods')
from intermediate.int_holds inner join intermediate.int_job_runs using (job_run_key) where method = 'assumed'
group by ownership = 'job_event'
union all
select
    'job runs known from labels alone',
    'no scheduler reports them, only labels on the series of GPUs; how they ended is unknown',
    count(*), null, min(job_run_key),
    'Add the scheduler: [[collect]] source = "slurm", or "kubernetes" with the url of a Prometheus'
from intermediate.int_job_runs where ownership = 'label'
union all
select
    'labels of unknown jobs',
    'series of GPUs bear job ids that the scheduler does not have: they say of no job which GPUs it has',
    count(distinct (owners.cluster, owners.owner)),
    sum(owners.last_ms - greatest(owners.first_ms, schedulers.since_ms)),
    min(owners.owner || ' on ' || owners.node),
    'Let the exporter write the scheduler''s job id alone (hpc_job), or ingest the accounting of that time'
from staging.stg_gpu_owners as owners
inner join (
    select cluster, min(submit_ms) as since_ms from intermediate.int_job_runs where not is_inferred group by cluster
) as schedulers using (cluster)
anti join (
    select cluster, unnest([job_id, job_id_raw]) as owner from intermediate.int_job_runs where not is_inferred
) as known using (cluster, owner)
where owners.kind = 'hpc_job' and owners.last_ms > since_ms
union all
select
    'more GPUs offered than there are',
    'nodes offer more GPUs to Kubernetes than telemetry lists: ' || case
        when replicas is null then 'what they offer counts as GPUs'
        else 'each GPU counts as one, in equal shares'
    end,
    count(*),
    null,
    min(cluster || '/' || node || ' offers ' || slots || ', ' || devices || ' listed'),
    case
        when replicas is null then 'Scrape all GPUs of the nodes; label them nvidia.com/gpu.count and nvidia.com/gpu.replicas'
        else 'Label the nodes nvidia.com/gpu.replicas (GPU feature discovery), or scrape all of their GPUs'
    end
from staging.stg_time_sliced
group by replicas is null, 2, 6
union all
select
    'GPUs shared by owners',
    'labels or annotations name several owners of one GPU at one time: each has an equal part of it',
    count(distinct gpu_uuid), sum(end_ms - start_ms), min(job_run_key || ' on ' || gpu_uuid), null
from intermediate.int_holds where contains(gpu_instance, 'share.') and method in ('label', 'pod')
union all
select
    'job runs inferred without a scheduler',
    'no scheduler covers their nodes: ownership comes from job events or lists of processes',
    count(*), null, min(job_run_key),
    'Add the scheduler, if there is one: [[collect]] source = "slurm", or "kubernetes"'
from intermediate.int_job_runs where ownership in ('job_event', 'process')
union all
select
    'readings of GPUs on no known node',
    'telemetry names GPUs but not where they are: they are not in the capacity',
    count(distinct gpu_uuid), sum(last_ms - first_ms), min(gpu_uuid),
    'Ingest an inventory file with their UUIDs, or scrape an exporter that labels series with the host'
from state.reading_series anti join intermediate.int_gpu_inventory using (gpu_uuid)
where not contains(gpu_uuid, '#')
union all
select
    'readings of GPUs without a UUID',
    'a table numbers GPUs that another source names by UUID: its readings are not used',
    count(distinct gpu_uuid), sum(last_ms - first_ms), min(gpu_uuid), 'Add `uuid` to the fields of `nvidia-smi --query-gpu`'
from state.reading_series anti join intermediate.int_gpu_inventory using (gpu_uuid)
where contains(gpu_uuid, '#')
union all
select
    'GPUs in two places',
    'a GPU is reported in two places at one time: it is counted in one of them (intermediate.int_gpu_units)',
    count(distinct gpu_uuid), null, min(gpu_uuid || ' in ' || place || ' and in ' || other_place),
    'Correct the wrong node or cluster: `goodput forget FILE`, then ingest it again; give each GPU a UUID of its own'
from (
    select
        claims.gpu_uuid,
        claims.cluster || '/' || claims.node as place,
        others.cluster || '/' || others.node as other_place
    from intermediate.int_gpu_claims as claims
    inner join intermediate.int_gpu_claims as others using (gpu_uuid)
    where
        (claims.cluster, claims.node) < (others.cluster, others.node)
        and (
            claims.start_ms = others.start_ms
            or claims.start_ms < coalesce(others.end_ms, forever_ms())
            and others.start_ms < coalesce(claims.end_ms, forever_ms())
        )
)
union all
select
    'instances beyond a whole GPU',
    'more MIG slices are listed for a GPU than it has: what does not fit is left out of the ledger',
    count(*), null, min(gpu_uuid || '/' || gpu_instance || ' (' || profile || ')'),
    'Look at what the exporter or inventory lists: nvidia-smi mig -lgi'
from intermediate.int_gpu_instances where is_beyond
union all
select
    'steps that were not reached',
    'an attempt began at a step that its run had not reached: what was rolled back before it is not known, and counts as retained',
    count(*), null, min(run_key || ' at step ' || resumed_step || ' after ' || reached_step),
    'Number the steps of a run on from the saved step, also when the batch size changes'
from intermediate.int_skipped_steps having count(*) > 0
union all
select
    'jobs with shards of unknown size',
    'no source says how many shards a GPU of their node has: their GPU time is not counted',
    count(*), null, min(cluster || '/' || job_id_raw), 'Ingest `scontrol show node`, which lists gpu and shard in Gres'
from staging.stg_parts_of_gpus where gpus is null
union all
select
    'jobs with shares of unknown size',
    'no source lists the GPUs of which they have a share: their GPU time is not counted',
    count(*), null, min(job_run_key), 'Scrape the GPUs of their nodes, or kube-state-metrics, which has nvidia.com/gpu.replicas'
from intermediate.int_job_runs
anti join intermediate.int_holds using (job_run_key)
anti join staging.stg_parts_of_gpus using (cluster, job_id_raw, submit_ms)
where gpu_type = 'shared' and gpus > 0 and start_ms is not null
union all
select
    'jobs without tracked GPUs', 'the accounting has no gres/gpu for them: their number of GPUs is unknown, not 0', count(*), null,
    min(job_run_key), 'Set AccountingStorageTRES=gres/gpu, or ingest `scontrol show job -d` while jobs run'
from intermediate.int_job_runs as runs
anti join staging.stg_parts_of_gpus as parts using (cluster, job_id_raw, submit_ms)
where runs.gpus is null and start_ms is not null
union all
select
    'capacity known from jobs alone', 'GPUs seen only because they were allocated to a job', count(distinct gpu_uuid), null,
    min(gpu_uuid),
    'Ingest telemetry, an inventory file, or what the scheduler lists: `scontrol show node`, kube-state-metrics'
from intermediate.int_gpu_units where method = 'holds'
union all
select
    'durability unknown', 'steps of ended attempts whose job never reports durable checkpoints', count(*), null,
    min(attempt_key), 'Emit ckpt.durable when a checkpoint is complete'
from intermediate.int_train_steps where fate = 'durability_unknown'
union all
select
    'splits that exceed their step', 'reported waits were longer than the step and were cut', count(*), null,
    min(attempt_key), 'Check the job''s timers'
from intermediate.int_step_splits where is_cut
union all
select
    'suspended, place unknown',
    'the accounting reports how long a job was suspended, not when: its place within the hold is assumed',
    count(*), null, min(attempt_key), null
from intermediate.int_run_timeline where category = 'suspended' and phase = 'placement_assumed'
union all
select
    'duplicate scheduler records', 'one scheduler record with two submit times: read with a wrong time zone?',
    count(*), null, min(job), 'Take the wrong one back (`goodput forget FILE`) and ingest it with the right --timezone'
from staging.stg_duplicate_job_records
union all
select
    'running jobs that vanished', 'the accounting listed them as running, and later no longer: how they ended is unknown',
    count(*), null, min(job_run_key),
    'Ingest a listing of all jobs since their start (`sacct -a -D`); see `sacctmgr show runawayjobs`'
from intermediate.int_job_runs where outcome = 'running' and end_ms is not null
union all
select
    'nodes in two clusters', 'one node name in two clusters: is --cluster spelt alike everywhere?',
    count(*), null, min(node), 'If they are one cluster, take one back (`goodput forget FILE`) and ingest it with the other''s --cluster'
from (
    select node from intermediate.int_gpu_units group by node having count(distinct cluster) > 1
)
union all
select
    'busy with no job', 'telemetry saw GPUs at work that no job run held', count(distinct gpu_uuid),
    sum(end_ms - start_ms),
    min(node), 'Ingest the scheduler''s records of that time, or a machine without one with its own --cluster; else look who uses them'
from marts.busy_unallocated
union all
select
    'collectives of unknown ranks',
    'the NCCL Inspector names processes that no job event and no rank map ties to a run: their time is in no run',
    count(*), sum(last_ms - first_ms), min(node || ', pid ' || pid),
    'Let the job write job events with `pid`, or ingest the NCCL debug log of its start'
from (
    select cluster, node, pid, min(coalesce(started_ms, dumped_ms)) as first_ms, max(dumped_ms) as last_ms
    from staging.stg_collectives
    anti join intermediate.int_rank_gpus using (cluster, node, pid)
    group by cluster, node, pid
)
union all
select
    'collectives not recorded',
    'numbers of operations are missing between those that the NCCL Inspector wrote: stragglers and bandwidths go by '
    || round(100.0 * sum(seen) / nullif(sum(seen) + sum(missing), 0), 1) || ' % of them',
    sum(missing)::bigint, null,
    arg_max(
        counted || ' of ' || comm || ', rank ' || rank || ' on ' || node || ': ' || seen || ' of ' || (seen + missing),
        (missing, counted, comm, rank, cluster, node)
    ),
    'Let NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS be shorter; small operations are left out by '
    || 'NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES'
from (
    select
        cluster, node, rank, coalesce(comm_name, comm_id) as comm,
        case when is_p2p then 'point to point' else operation end as counted,
        count(distinct sequence_number) as seen,
        max(sequence_number) - min(sequence_number) + 1 - count(distinct sequence_number) as missing
    from staging.stg_collectives
    group by cluster, node, pid, comm_id, comm, rank, counted
)
union all
select
    'blank values', string_agg(share, '; ' order by blank desc), sum(blank), null, min(example),
    'The exporter or the driver does not give these values: see its log, or leave the counters out'
from (
    select
        blanks.metric || ' blank in ' || sum(blanks.blank) || ' of ' || sum(read.samples) || ' readings' as share,
        sum(blanks.blank) as blank,
        min(blanks.gpu_uuid) as example
    from intermediate.int_blank_values as blanks
    inner join (
        select source, gpu_uuid, gpu_instance, hour_ms, sum(samples) as samples
        from intermediate.int_gpu_metrics
        semi join intermediate.int_blank_values using (source, gpu_uuid, gpu_instance, hour_ms)
        group by all
    ) as read using (source, gpu_uuid, gpu_instance, hour_ms)
    group by blanks.metric
)
having count(*) > 0
union all
select
    'readings of frozen hours', 'they came after [retention] dropped the others of their hours, and are not used',
    count(*), null, min(samples.gpu_uuid),
    'Ingest all files of that time with --reopen: hours reopen once all their readings are back'
from staging.stg_gpu_samples as samples
inner join state.kept_from as kept on kept.table_name = 'gpu_samples'
where samples.ts < from_ms(kept.kept_from_ms)
union all
select
    'logs without a cluster',
    'job logs that were taken as of ' || min(cluster) || ', the only cluster, since it has a job of their id (Likely)',
    count(*), null, min(run_id), 'Ingest them with --cluster, or set `cluster` of the followed folder'
from state.claimed_logs
union all
select
    'rejected rows', 'rows that could not be parsed', count(*), null, min(reason), 'See the rejects below'
from staging.stg_rejects
