-- skip_if_empty: marts.link_events
-- gpu_ms: of runs with GPUs of the node, what their steps took longer than before while the link was down, and what
--  attempts lost that it ended, in equal parts where links share it; null: no such loss is known
with events as materialized (
    select
        *,
        {node: node, device: device, port: port, start_at: start_at} as link,
        epoch_ms(after_at) as after_ms,
        coalesce(epoch_ms(end_at), scope_to_ms()) as until_ms
    from marts.link_events as events
    where
        sees_all_teams()
        and not exists (
            select 1
            from marts.fabric_incidents as fabric
            where
                fabric.cluster = events.cluster
                and fabric.kind = events.kind
                and events.start_at between fabric.start_at and fabric.last_at
        )
),

places as (
    select distinct job_run_key, cluster, node
    from intermediate.int_holds
    where node in (select node from events)
),

-- the bin in which steps became slower ends after the last reading of the link that was up
slower as (
    select
        events.cluster,
        events.link,
        changes.lost_gpu_ms * (least(changes.until_ms, events.until_ms) - greatest(changes.since_ms, events.after_ms))
        / (changes.until_ms - changes.since_ms)
        / count(*) over (partition by changes.attempt_key, changes.since_ms) as gpu_ms,
        prices.price_per_gpu_h
    from marts.rule_steps_slower as found
    inner join marts.step_changes as changes on found.run_key = changes.run_key and found.start_at = changes.since_at
    inner join marts.step_bins as bins on changes.attempt_key = bins.attempt_key and changes.since_ms = bins.start_ms
    inner join intermediate.int_attempts as attempts on changes.attempt_key = attempts.attempt_key
    inner join places using (job_run_key)
    inner join events
        on places.cluster = events.cluster
        and places.node = events.node
        and changes.since_ms < events.until_ms
        and bins.end_ms > events.after_ms
    left join intermediate.int_job_run_prices as prices using (job_run_key)
),

losses as (
    select cluster, link, sum(gpu_ms) as gpu_ms, sum(cost) as cost
    from (
        select cluster, link, gpu_ms, gpu_ms / one_hour_ms() * price_per_gpu_h as cost
        from slower
        union all
        -- where the failure reason is of the network or unknown, the link is the nearest one
        select
            events.cluster,
            events.link,
            attempts.lost_gpu_ms / count(*) over (partition by attempts.attempt_key),
            attempts.lost_cost / count(*) over (partition by attempts.attempt_key)
        from intermediate.int_failed_attempts_in_scope as attempts
        inner join intermediate.int_attempt_causes as causes using (attempt_key)
        inner join places using (job_run_key)
        inner join events
            on places.cluster = events.cluster
            and places.node = events.node
            and epoch_ms(events.start_at) between attempts.trouble_from_ms and attempts.trouble_until_ms
        where causes.class in ('network', 'unknown')
    )
    group by cluster, link
)

select
    events.cluster,
    events.node,
    events.device || coalesce(' port ' || events.port, '') as detail,
    events.start_at,
    events.end_at,
    events.end_at is not null as is_over,
    losses.gpu_ms::bigint as gpu_ms,
    losses.cost,
    case when events.is_seen_down then 'Confirmed' else 'Likely' end as confidence,
    events.device || coalesce(' port ' || events.port, '') || case
        when events.is_seen_down then ' was read as down' else ' went down between two readings, by its counter'
    end || coalesce('; meanwhile ' || gpu_time_text(losses.gpu_ms) || ' lost by runs on the node', '') as evidence
from events
left join losses using (cluster, link)
