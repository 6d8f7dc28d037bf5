-- Allocations whose nodes, GPUs or parts of GPUs do not suit them, and GPUs whose parts do not suit their jobs.
-- grain: rule, cluster, node, gpu_uuid, run_key
-- access: team
-- skip_if_empty: intermediate.int_holds
-- rule: spread_job (on more nodes than its GPUs fill), distributed_on_mig (its ranks are on several MIG instances),
--  serving_shares_gpu (an engine, beside jobs that have none), shared_memory_full (of a GPU with several programs),
--  empty_slices (of a MIG GPU in use)
-- gpu_ms: of empty_slices what no job had; else null, since nobody knows what it cost
with holds as materialized (
    select
        holds.* exclude (slurm_index, method)
        replace (scope_start(start_ms) as start_ms, scope_end(coalesce(end_ms, clusters.as_of_ms)) as end_ms),
        case gpu_instance when '' then 'GPU' else if(contains(gpu_instance, 'share.'), 'share', 'instance') end as kind,
        split_part(job_run_key, '@', 1) in (
            select cluster || '/' || namespace || '/' || pod from staging.stg_serving_endpoints
        ) as is_engine
    from intermediate.int_holds as holds
    inner join intermediate.int_clusters as clusters using (cluster)
    where in_window(start_ms, end_ms) and in_place(cluster, node, gpu_uuid, null)
),

sizes as (
    select cluster, node, count(distinct gpu_uuid) as gpus from intermediate.int_gpu_units where gpu_instance = '' group by all
),

spread as (
    select
        job_run_key, cluster, max(start_ms) as start_ms, min(end_ms) as end_ms, count(distinct node) as nodes,
        count(distinct gpu_uuid) as own, ceil(own / min(sizes.gpus))::bigint as needed
    from holds
    inner join sizes using (cluster, node)
    where job_run_key not in (select job_run_key from holds where kind <> 'GPU')
    group by job_run_key, cluster
    -- which it had at one time
    having needed < nodes and min(end_ms) - max(start_ms) >= threshold('spread_min_ms')
),

on_mig as (
    select
        job_run_key, holds.cluster, min(holds.start_ms) as start_ms, max(holds.end_ms) as end_ms,
        count(distinct ranks.rank) as ranks, count(distinct (holds.gpu_uuid, holds.gpu_instance)) as instances
    from holds
    inner join intermediate.int_attempts as attempts using (job_run_key)
    inner join intermediate.int_rank_gpus as ranks using (attempt_key)
    where kind = 'instance'
    group by job_run_key, holds.cluster
    having ranks > 1 and instances > 1
),

beside as (
    select
        own.job_run_key, own.cluster, own.node, own.gpu_uuid, count(distinct others.job_run_key) as jobs,
        min(greatest(own.start_ms, others.start_ms)) as start_ms, max(least(own.end_ms, others.end_ms)) as end_ms
    from (from holds where kind = 'share' and is_engine) as own
    inner join (from holds where kind = 'share' and not is_engine) as others
        on own.gpu_uuid = others.gpu_uuid
        and least(own.end_ms, others.end_ms) - greatest(own.start_ms, others.start_ms) >= ten_minutes_ms()
    group by all
),

shared as (
    select gpu_uuid from staging.stg_gpu_processes semi join holds using (gpu_uuid) where processes > 1
    union
    select gpu_uuid from holds where kind = 'share'
),

full_bins as materialized (
    select gpu_uuid, start_ms, start_ms + ten_minutes_ms() as end_ms, max(memory_used_bytes.max / memory_bytes) as used_ratio
    from intermediate.int_gpu_metrics
    inner join (select gpu_uuid, max(memory_bytes) as memory_bytes from staging.stg_gpus group by gpu_uuid) using (gpu_uuid)
    where
        gpu_instance = ''
        and gpu_uuid in (from shared)
        and hour_ms > scope_from_ms() - one_hour_ms()
        and in_window(start_ms, start_ms + ten_minutes_ms())
        and memory_used_bytes.max >= threshold('shared_memory_ratio') * memory_bytes
    group by gpu_uuid, start_ms
),

programs as (
    select gpu_uuid, bins.start_ms, min(processes) as programs
    from full_bins as bins
    inner join staging.stg_gpu_processes as seen using (gpu_uuid)
    where seen.ts_ms >= bins.start_ms and seen.ts_ms < bins.end_ms
    group by gpu_uuid, bins.start_ms
    union all
    select gpu_uuid, bins.start_ms, count(distinct job_run_key)
    from full_bins as bins
    inner join holds using (gpu_uuid)
    where kind = 'share' and holds.start_ms <= bins.start_ms and holds.end_ms >= bins.end_ms
    group by gpu_uuid, bins.start_ms
),

crowded as (
    select
        gpu_uuid, min(start_ms) as start_ms, max(end_ms) as end_ms, max(programs) as programs, max(used_ratio) as used_ratio
    from full_bins
    inner join (select gpu_uuid, start_ms, max(programs) as programs from programs group by all) using (gpu_uuid, start_ms)
    where programs > 1
    group by gpu_uuid
    having count(*) >= threshold('host_min_bins')
),

-- from the first job on the GPU to the last
slices as (
    select
        parts.cluster, parts.node, gpu_uuid, first_ms as start_ms, last_ms as end_ms,
        count(distinct gpu_instance) filter (where gpu_instance <> 'rest') as instances,
        sum((least(end_ms, last_ms) - greatest(start_ms, first_ms)) * (share_hi - share_lo) / share_of) as all_ms,
        sum((least(end_ms, last_ms) - greatest(start_ms, first_ms)) * (share_hi - share_lo) / share_of)
            filter (where job_run_key is null) as empty_ms
    from intermediate.int_segments_in_window as parts
    inner join (
        select gpu_uuid, min(start_ms) as first_ms, max(end_ms) as last_ms from holds where kind = 'instance' group by gpu_uuid
    ) using (gpu_uuid)
    where gpu_instance <> '' and start_ms < last_ms and end_ms > first_ms
    group by parts.cluster, parts.node, gpu_uuid, first_ms, last_ms
    having all_ms >= one_hour_ms() and empty_ms >= threshold('empty_slices_ratio') * all_ms
),

found as (
    select
        'spread_job' as rule, cluster, null as node, null as gpu_uuid, job_run_key, start_ms, end_ms, null as gpu_ms,
        printf('%d GPUs on %d nodes; %d would have room for them', own, nodes, needed) as evidence
    from spread
    union all by name
    select
        * exclude (ranks, instances), 'distributed_on_mig' as rule,
        printf('%d ranks on %d MIG instances', ranks, instances) as evidence
    from on_mig
    union all by name
    select
        * exclude (jobs), 'serving_shares_gpu' as rule,
        counted(jobs, 'job') || ' without an engine shared the GPU with it' as evidence
    from beside
    union all by name
    select
        crowded.* exclude (programs, used_ratio), 'shared_memory_full' as rule, places.cluster, places.node,
        printf('%d programs on the GPU, and up to %.1f %% of its memory in use', programs, 100 * used_ratio) as evidence
    from crowded
    inner join (select gpu_uuid, any_value(cluster) as cluster, any_value(node) as node from intermediate.int_gpu_units group by all)
        as places using (gpu_uuid)
    where in_place(places.cluster, places.node, gpu_uuid, null)
    union all by name
    select
        * exclude (instances, all_ms, empty_ms), 'empty_slices' as rule, empty_ms::bigint as gpu_ms,
        printf('no job had %.0f %% of the GPU, which has %d instances', 100 * empty_ms / all_ms, instances) as evidence
    from slices
)

select
    found.* exclude (job_run_key, start_ms, end_ms), owners.run_key, from_ms(start_ms) as start_at, from_ms(end_ms) as end_at,
    null::double as cost,
    if(found.rule = 'serving_shares_gpu', 'Likely', 'Confirmed') as confidence
from found
left join intermediate.int_job_run_owners as owners using (job_run_key)
where of_owner(owners.team, owners.user_name, owners.run_key, owners.partition)
