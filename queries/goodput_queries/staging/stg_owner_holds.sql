-- Holds by labels of telemetry, for times of which no scheduler tells: from the first record of a scheduler on
-- it alone says who had what in its cluster, since labels stay when their job has gone.
-- grain: job_run_key, gpu_uuid, gpu_instance, start_ms
-- job_run_key: an owner from one absence of its labels to the next
-- end_ms: where the label was read last
with schedulers as (
    select
        cluster,
        to_ms(min(submit_at)) as since_ms,
        arg_min(load_sequence, submit_at) as load_sequence
    from raw.job_runs
    group by cluster
),

told as (
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
    from told
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
    max(last_ms) as end_ms,
    max(load_sequence) as load_sequence
from begun
group by cluster, kind, owner, submit_ms, gpu_uuid, gpu_instance, stay
