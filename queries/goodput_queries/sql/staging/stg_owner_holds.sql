-- Holds by labels of telemetry, and of pods that are known to share a GPU. Labels count for times without a scheduler: from its first record on a scheduler alone determines
-- ownership in its cluster, since labels stay after the end of their job.
-- grain: job_run_key, gpu_uuid, gpu_instance, start_ms
-- Owners of one GPU or MIG instance at one time have equal parts, 'share.<n>/<of>' or '<instance>/share.<n>/<of>', unless a source
-- reports the parts.
-- kind: of the label; 'share': a pod of Kubernetes that shares its GPU by an annotation, by its label, or with a pod that has
--  it at the same time
-- job_run_key: an owner from one absence of its labels to the next
-- last_ms: where the label was read last
-- end_ms: the same; null: on the latest reading of the GPU, which is no older in its cluster than a label may be away
-- materialised: full, since both what job runs there are and what they held is asked of it, in several selects
-- skip_if_empty: raw.gpu_owners, raw.holds where source like 'kubernetes%' and gpu_uuid is not null
with readings as (
    select
        gpus.cluster,
        series.gpu_uuid,
        series.gpu_instance,
        max(series.last_ms) as read_ms,
        max(max(series.last_ms)) over (partition by gpus.cluster) - threshold('label_absent_ms') as since_ms
    from state.reading_series as series
    inner join (select distinct cluster, gpu_uuid from staging.stg_gpus) as gpus using (gpu_uuid)
    group by gpus.cluster, series.gpu_uuid, series.gpu_instance
),

schedulers as (
    select
        cluster,
        to_ms(min(submit_at)) as since_ms,
        arg_min(load_sequence, submit_at) as load_sequence
    from raw.job_runs
    group by cluster
),

labelled as (
    select
        owners.* exclude (last_ms, user_name, partition, load_sequence),
        least(owners.last_ms, schedulers.since_ms) as last_ms,
        greatest(owners.load_sequence, schedulers.load_sequence) as load_sequence
    from staging.stg_gpu_owners as owners
    left join schedulers using (cluster)
    where owners.first_ms < coalesce(schedulers.since_ms, forever_ms())
),

reached as (
    select
        *,
        max(last_ms) over (
            partition by cluster, kind, owner order by first_ms, last_ms
            rows between unbounded preceding and 1 preceding
        ) as before_ms,
        max(last_ms) over (
            partition by cluster, kind, owner, gpu_uuid, gpu_instance order by first_ms, last_ms
            rows between unbounded preceding and 1 preceding
        ) as here_before_ms
    from labelled
),

numbered as (
    select
        *,
        count_if(coalesce(first_ms - before_ms > threshold('label_absent_ms'), true)) over (
            partition by cluster, kind, owner order by first_ms, last_ms rows unbounded preceding
        ) as presence,
        count_if(coalesce(first_ms - here_before_ms > threshold('label_absent_ms'), true)) over (
            partition by cluster, kind, owner, gpu_uuid, gpu_instance order by first_ms, last_ms
            rows unbounded preceding
        ) as stay
    from reached
),

begun as (
    select *, min(first_ms) over (partition by cluster, kind, owner, presence) as submit_ms from numbered
),

-- a pod that later listings have no more ended at its last one, as in stg_job_runs
pods as (
    select
        cluster, job_id_raw as owner, submit_at, min(start_at) as start_at, max(gpus) as gpus,
        case
            when count(*) = count(end_at) then max(end_at)
            when max(listed_at) - max(observed_at) > to_milliseconds(threshold('vanished_min_ms'))
                then greatest(max(observed_at), min(start_at))
        end as end_at,
        min(load_sequence) as load_sequence
    from (
        select
            *,
            max(greatest(submit_at, start_at, end_at, observed_at)) filter (where source = 'kubernetes-api') over (
                partition by cluster
            ) as listed_at
        from raw.job_runs
        where source like 'kubernetes%'
    )
    where start_at is not null
    group by cluster, job_id_raw, submit_at
),

-- whole GPUs of pods, as Kubernetes or their labels name them
named as (
    select
        pods.* exclude (start_at, end_at, gpus, load_sequence),
        min(holds.node) as node,
        holds.gpu_uuid,
        coalesce(holds.start_at, pods.start_at) as start_at,
        max(coalesce(holds.end_at, pods.end_at, 'infinity')) as end_at,
        max(holds.load_sequence) as load_sequence
    from raw.holds as holds
    inner join pods on holds.cluster = pods.cluster and holds.job_id_raw = pods.owner and holds.submit_at = pods.submit_at
    where holds.gpu_uuid is not null and holds.gpu_instance = ''
    group by all
),

-- an end may be seen late: pods that overlap for long share the GPU, whatever they asked for
of_many as (
    select gpu_uuid
    from (
        select
            gpu_uuid,
            start_at + to_milliseconds(threshold('label_absent_ms')) <= least(end_at, max(end_at) over (
                partition by gpu_uuid order by start_at rows between unbounded preceding and 1 preceding
            )) as is_shared
        from named
    )
    where is_shared
),

of_pods as (
    select
        pods.* exclude (start_at, end_at, gpus, load_sequence),
        holds.node,
        holds.gpu_uuid,
        false as is_by_label,
        coalesce(holds.start_at, pods.start_at) as start_at,
        coalesce(holds.end_at, pods.end_at) as end_at,
        holds.load_sequence
    from raw.holds as holds
    inner join pods on holds.cluster = pods.cluster and holds.job_id_raw = pods.owner and holds.submit_at = pods.submit_at
    where holds.gpu_instance = 'share'
    union all
    select
        pods.* exclude (start_at, end_at, gpus, load_sequence), min(owners.node), min(owners.gpu_uuid), true,
        min(pods.start_at), max(pods.end_at), min(pods.load_sequence)
    from pods
    inner join staging.stg_gpu_owners as owners
        on pods.cluster = owners.cluster
        and pods.owner = owners.owner
        and owners.first_ms < coalesce(to_ms(pods.end_at), forever_ms())
        and owners.last_ms >= to_ms(pods.start_at)
    anti join (from raw.holds where gpu_uuid is not null) as named
        on pods.cluster = named.cluster and pods.owner = named.job_id_raw and pods.submit_at = named.submit_at
    where owners.kind = 'pod' and owners.gpu_instance = '' and pods.gpus = 1
    group by all
    having count(distinct owners.gpu_uuid) = 1
    union all by name
    select * replace (nullif(end_at, 'infinity') as end_at), false as is_by_label
    from named
    semi join of_many using (gpu_uuid)
),

holds as (
    select
        cluster || '/' || owner || '@' || to_ms(submit_at) // 1000 as job_run_key,
        cluster,
        'share' as kind,
        owner,
        to_ms(submit_at) as submit_ms,
        node,
        gpu_uuid,
        '' as gpu_instance,
        is_by_label,
        to_ms(start_at) as start_ms,
        coalesce(to_ms(end_at), forever_ms()) as last_ms,
        to_ms(end_at) as end_ms,
        load_sequence
    from of_pods
    where coalesce(end_at > start_at, true)
    union all by name
    select
        cluster || '/' || owner || '@' || submit_ms // 1000 as job_run_key,
        cluster,
        kind,
        owner,
        submit_ms,
        any_value(node) as node,
        gpu_uuid,
        gpu_instance,
        false as is_by_label,
        min(first_ms) as start_ms,
        max(last_ms) as last_ms,
        case
            when max(last_ms) < coalesce(any_value(greatest(readings.read_ms, readings.since_ms)), forever_ms())
                then max(last_ms)
        end as end_ms,
        max(load_sequence) as load_sequence
    from begun
    left join readings using (cluster, gpu_uuid, gpu_instance)
    group by cluster, kind, owner, submit_ms, gpu_uuid, gpu_instance, stay
    having min(first_ms) < max(last_ms)  -- a single reading lasts for no time, but goes on with those around it
),

-- GPUs of whose parts a source reports
cut as (
    select gpus.gpu_uuid
    from staging.stg_gpus as gpus
    where
        gpus.gpu_uuid in (select gpu_uuid from raw.gpu_instances)
        or gpus.node in (
            select regexp_extract(gpu_uuid, '^(.*)#[0-9]+$', 1) from raw.gpu_instances where contains(gpu_uuid, '#')
        )
        or (gpus.cluster, gpus.node) in (
            select (cluster, node) from staging.stg_time_sliced where replicas is not null
        )
),

sliced as (select gpu_uuid from staging.stg_gpus semi join staging.stg_sliced_instances using (cluster, node)),

shared as (
    select distinct gpu_uuid, gpu_instance
    from (
        select
            gpu_uuid,
            gpu_instance,
            start_ms < max(coalesce(end_ms, forever_ms())) over (
                partition by gpu_uuid, gpu_instance order by start_ms, job_run_key
                rows between unbounded preceding and 1 preceding
            ) as is_shared
        from holds
    )
    where is_shared and not case when gpu_instance = '' then gpu_uuid in (from cut) else gpu_uuid in (from sliced) end
),

whole as (select holds.* from holds semi join shared using (gpu_uuid, gpu_instance)),

edges as (
    select gpu_uuid, gpu_instance, start_ms as at_ms from whole
    union
    select gpu_uuid, gpu_instance, coalesce(end_ms, forever_ms()) from whole
),

cells as (
    select
        gpu_uuid, gpu_instance, at_ms as from_ms, lead(at_ms) over (partition by gpu_uuid, gpu_instance order by at_ms) as to_ms
    from edges
),

ranked as (
    select
        whole.*,
        cells.from_ms,
        cells.to_ms,
        row_number() over of_cell - 1 as place,
        count(*) over (partition by cells.gpu_uuid, cells.gpu_instance, cells.from_ms) as sharers
    from whole
    inner join cells
        on whole.gpu_uuid = cells.gpu_uuid
        and whole.gpu_instance = cells.gpu_instance
        and whole.start_ms <= cells.from_ms
        and coalesce(whole.end_ms, forever_ms()) >= cells.to_ms
    window of_cell as (partition by cells.gpu_uuid, cells.gpu_instance, cells.from_ms order by whole.job_run_key)
),

parts as (
    select
        * exclude (place, sharers),
        case
            when sharers > 1 then concat_ws('/', nullif(gpu_instance, ''), 'share.' || place || '/' || sharers) else gpu_instance
        end as part
    from ranked
),

-- a part goes on from cell to cell
turns as (
    select
        *,
        (part, from_ms) is distinct from (
            lag(part) over of_hold, lag(to_ms) over of_hold
        ) as is_new
    from parts
    window of_hold as (partition by job_run_key, gpu_uuid, gpu_instance, start_ms order by from_ms)
),

stretches as (
    select
        *,
        count_if(is_new) over (
            partition by job_run_key, gpu_uuid, gpu_instance, start_ms order by from_ms rows unbounded preceding
        ) as stretch
    from turns
)

-- the label of a pod that is alone on its GPU adds nothing
select holds.* exclude (is_by_label)
from holds
anti join shared using (gpu_uuid, gpu_instance)
where not is_by_label
union all by name
select
    job_run_key,
    any_value(columns(['cluster', 'kind', 'owner', 'submit_ms', 'node'])),
    any_value(part) as gpu_instance,
    gpu_uuid,
    min(from_ms) as start_ms,
    least(max(last_ms), max(to_ms)) as last_ms,
    nullif(max(to_ms), forever_ms()) as end_ms,
    max(load_sequence) as load_sequence
from stretches
group by job_run_key, gpu_uuid, stretches.gpu_instance, start_ms, stretch
