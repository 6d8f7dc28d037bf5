-- What jobs said of themselves, with times in epoch ms and the attempt worked out where it was not said.
-- grain: none (an event as it was written)
-- start_ms: ts - dur_s of a span, else ts
-- end_ms: ts
-- attempt: as given, else the number of earlier starts of this rank: a `job.start`, or a step number
--  that does not go on
with job_events as (select * from raw.job_events),

told_starts as (
    select
        *,
        count_if(event = 'job.start') over (
            partition by run_id, host, rank order by ts rows between unbounded preceding and current row
        ) as starts
    from job_events
    where attempt is null
),

starts_marked as (
    select
        *,
        event = 'job.start'
        or (
            event = 'step' and step <= lag(step) over (
                partition by run_id, host, rank, event, starts order by ts
            )
        ) as is_start
    from told_starts
),

attempts_inferred as (
    select
        * exclude (attempt, is_start, starts),
        greatest(
            count_if(is_start) over (
                partition by run_id, host, rank order by ts
                rows between unbounded preceding and current row
            ) - 1,
            0
        )::integer as attempt
    from starts_marked
),

numbered as (
    select * from job_events where attempt is not null
    union all by name
    select * from attempts_inferred
)

select
    coalesce(numbered.cluster, node_clusters.cluster, 'default') as cluster,
    numbered.run_id,
    numbered.attempt,
    numbered.rank,
    numbered.host,
    numbered.pid,
    numbered.gpu_uuid,
    numbered.event,
    numbered.step,
    numbered.phase,
    to_ms(numbered.ts - to_microseconds(cast(round(coalesce(numbered.dur_s, 0) * 1e6) as bigint))) as start_ms,
    to_ms(numbered.ts) as end_ms,
    numbered.ts,
    numbered.dur_s,
    numbered.data_s,
    numbered.comm_s,
    numbered.straggler_s,
    numbered.throttle_s,
    numbered.tokens,
    numbered.flops,
    numbered.kind,
    numbered.msg,
    numbered.reports_durability
from numbered
left join staging.stg_node_clusters as node_clusters on numbered.host = node_clusters.node
