-- Holds by labels of telemetry, for times without a scheduler: from its first record on a scheduler alone determines
-- ownership in its cluster, since labels stay after the end of their job.
-- grain: job_run_key, gpu_uuid, gpu_instance, start_ms
-- job_run_key: an owner from one absence of its labels to the next
-- last_ms: where the label was read last
-- end_ms: the same; null: on the latest reading of the GPU, which is no older in its cluster than a label may be away
-- materialised: full, since both what job runs there are and what they held is asked of it, in several selects
-- skip_if_empty: raw.gpu_owners
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
        owners.* exclude (last_ms, load_sequence),
        least(owners.last_ms, schedulers.since_ms) as last_ms,
        greatest(owners.load_sequence, schedulers.load_sequence) as load_sequence
    from staging.stg_gpu_owners as owners
    left join schedulers using (cluster)
    where owners.first_ms < least(owners.last_ms, schedulers.since_ms)
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
)

select
    cluster || '/' || owner || '@' || submit_ms // 1000 as job_run_key,
    cluster,
    kind,
    owner,
    submit_ms,
    any_value(node) as node,
    gpu_uuid,
    gpu_instance,
    min(first_ms) as start_ms,
    max(last_ms) as last_ms,
    case
        when max(last_ms) < coalesce(any_value(greatest(readings.read_ms, readings.since_ms)), 9223372036854775807)
            then max(last_ms)
    end as end_ms,
    max(load_sequence) as load_sequence
from begun
left join readings using (cluster, gpu_uuid, gpu_instance)
group by cluster, kind, owner, submit_ms, gpu_uuid, gpu_instance, stay
