-- GPUs of job runs that were allocated a part of one GPU (gres/shard, gres/mps). The accounting does not say of which: by start,
-- each goes on the last GPU of its node that is shared already and has room for it, else on the last that is not shared, and
-- stays there; GPUs that a source names for another job run meanwhile are left out, and a GPU that a source names for this one,
-- or with the job's id on its series, is the one.
-- grain: job_run_key
-- gpu_uuid: null: no GPU of the node has room for it
-- gpu_instance: 'share.<job>/<parts of a GPU>'
-- slices, slices_of: its part
-- end_ms: null: it still runs
-- materialised: full, since slots, instances and placement ask it
-- skip_if_empty: raw.gpu_parts, raw.job_runs where regexp_matches(alloc_tres, 'gres/(shard|mps)[:=]')
with recursive gpus as (
    select
        cluster,
        node,
        gpu_uuid,
        (row_number() over (
            partition by cluster, node order by coalesce(slurm_index, gpu_index), gpu_uuid
        ) - 1)::integer as place
    from (
        select cluster, node, gpu_uuid, min(slurm_index) as slurm_index, min(gpu_index) as gpu_index
        from intermediate.int_gpu_inventory
        group by cluster, node, gpu_uuid
    )
),

asked as (
    select
        runs.cluster,
        parts.node,
        runs.job_run_key,
        runs.job_id,
        runs.job_id_raw,
        runs.submit_ms,
        runs.start_ms,
        coalesce(runs.end_ms, forever_ms()) as end_ms,
        parts.slices::integer as slices,
        parts.slices_of::integer as slices_of,
        parts.gpu_uuid
    from staging.stg_parts_of_gpus as parts
    inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
    where parts.is_of_one_gpu and runs.start_ms is not null and coalesce(runs.end_ms > runs.start_ms, true)
),

-- whole GPUs that a source names for other job runs
named as (
    select
        runs.cluster,
        holds.node,
        gpus.place,
        coalesce(holds.start_ms, runs.start_ms) as start_ms,
        coalesce(holds.end_ms, runs.end_ms, forever_ms()) as end_ms
    from staging.stg_holds as holds
    inner join intermediate.int_job_runs as runs using (cluster, job_id_raw, submit_ms)
    inner join intermediate.int_gpu_inventory as inventory
        on runs.cluster = inventory.cluster
        and holds.node = inventory.node
        and (holds.gpu_uuid = inventory.gpu_uuid or holds.slurm_index = inventory.slurm_index)
    inner join gpus
        on inventory.cluster = gpus.cluster and inventory.node = gpus.node and inventory.gpu_uuid = gpus.gpu_uuid
    where
        (holds.cluster, holds.node) in (select (cluster, node) from asked)
        and (runs.job_run_key) not in (select job_run_key from asked)
),

blocked as (
    select asked.job_run_key, list(distinct named.place) as places
    from asked
    inner join named
        on asked.cluster = named.cluster
        and asked.node = named.node
        and asked.start_ms < named.end_ms
        and asked.end_ms > named.start_ms
    group by asked.job_run_key
),

labelled as (
    select asked.job_run_key, [gpus.place::bigint] as places
    from asked
    inner join gpus using (cluster, node, gpu_uuid)
    union all
    select asked.job_run_key, list(distinct gpus.place::bigint) as places
    from asked
    inner join staging.stg_gpu_owners as owners
        on asked.cluster = owners.cluster
        and asked.node = owners.node
        and owners.owner in (asked.job_id, asked.job_id_raw)
        and owners.first_ms < asked.end_ms
        and owners.last_ms >= asked.start_ms
    inner join gpus
        on owners.cluster = gpus.cluster and owners.node = gpus.node and owners.gpu_uuid = gpus.gpu_uuid
    where owners.kind = 'hpc_job' and asked.gpu_uuid is null
    group by asked.job_run_key
),

jobs as (
    select
        asked.*,
        row_number() over (partition by asked.cluster, asked.node order by asked.start_ms, asked.job_run_key) as nth,
        -- of the node, the last first
        coalesce(
            labelled.places,
            list_filter(
                list_reverse(range(coalesce(sizes.gpus, 0))),
                lambda place: not coalesce(list_contains(blocked.places, place), false)
            )
        ) as places
    from asked
    left join blocked using (job_run_key)
    left join labelled using (job_run_key)
    left join (
        select cluster, node, count(*)::integer as gpus from gpus group by cluster, node
    ) as sizes using (cluster, node)
),

-- one job run of each node a step; taken: what the job runs have that still run
placed as (
    select distinct
        cluster,
        node,
        0::bigint as nth,
        null::varchar as job_run_key,
        null::bigint as place,
        []::struct(place bigint, end_ms bigint, slices integer, slices_of integer)[] as taken
    from jobs
    union all
    select
        cluster,
        node,
        nth,
        job_run_key,
        place,
        case
            when place is null then taken
            else list_append(taken, {place: place, end_ms: end_ms, slices: slices, slices_of: slices_of})
        end
    from (
        select
            * exclude (with_room),
            coalesce(
                list_filter(with_room, lambda one: list_contains(list_transform(taken, lambda held: held.place), one))[1],
                with_room[1]
            ) as place
        from (
            select
                *,
                list_filter(
                    places,
                    lambda one: coalesce(list_sum(list_transform(
                        list_filter(taken, lambda held: held.place = one),
                        -- shards and MPS do not share a GPU
                        lambda held: case when held.slices_of = slices_of then held.slices else slices_of end
                    )), 0) + slices <= slices_of
                ) as with_room
            from (
                select
                    jobs.*,
                    list_filter(placed.taken, lambda held: held.end_ms > jobs.start_ms) as taken
                from placed
                inner join jobs
                    on placed.cluster = jobs.cluster and placed.node = jobs.node and jobs.nth = placed.nth + 1
            )
        )
    )
)

select
    jobs.* exclude (job_id, gpu_uuid, end_ms, places),
    gpus.gpu_uuid,
    'share.' || jobs.job_id_raw || '/' || jobs.slices_of as gpu_instance,
    nullif(jobs.end_ms, forever_ms()) as end_ms
from jobs
inner join placed using (job_run_key)
left join gpus on jobs.cluster = gpus.cluster and jobs.node = gpus.node and placed.place = gpus.place
