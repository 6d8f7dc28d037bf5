-- Series that vanished: of a GPU while other GPUs of its node go on being read (it may have fallen off the bus), of all
-- GPUs of a node, or of all nodes of a cluster. Silent: longer than threshold silent_min_scrapes sampling intervals and
-- threshold silent_min_ms; silent_gpu_min_ms while a GPU is still not read. Never idle time: nobody knows what these GPUs did.
-- GPUs that were never read are left out, nodes and whole clusters while the scheduler reports them
-- powered off or in maintenance, and what a
-- live source has not come to yet that loads the past: its poll is not over, and brought rows in the five minutes before the
-- last load.
-- grain: rule, cluster, node, gpu_uuid, start_at
-- skip_if_empty: state.reading_series, raw.gpu_events
-- rule: silent_gpu, silent_node or silent_source
-- start_at: last reading, cut at the window where the series was read again later; end_at: when readings cover it again (up to
--  2.5 sampling intervals before the first of them); null: not read again. Of nodes and clusters, silences that ended within
--  threshold silent_restart_ms are left out: exporters are restarted
-- gpus: number of GPUs; sources: who read them
-- gpu_ms: GPU time without readings in the window; cost: null, since it is no loss
-- effect: allocated: a job had the GPU; no_data: nothing of the cluster was read for threshold no_data_page_ms
-- score: sampling intervals without a reading
-- confidence: Confirmed where an event or a node state agrees, else Likely
with series as materialized (
    select
        gpu_uuid,
        min(first_ms) as first_ms,
        max(last_ms) as last_ms,
        arg_max(source, last_ms) as source
    from state.reading_series
    group by gpu_uuid
),

stays as materialized (
    select stays.cluster, stays.node, stays.gpu_uuid, stays.start_ms, stays.end_ms
    from intermediate.int_stays_in_scope as stays
    inner join series using (gpu_uuid)
),

loading as (
    select polled.source
    from (
        select *, count(*) over (partition by source) as origins from state.source_status where retired_at is null
    ) as polled
    where
        polled.failures = 0
        and coalesce(polled.answered_at < polled.asked_at, true)
        and exists (
            from state.ingested as loads
            where
                loads.source = polled.source
                and (
                    polled.origins = 1
                    or loads.origin = polled.origin
                    or starts_with(loads.origin, rtrim(polled.origin, '/') || '/')
                )
                and loads.rows_new > 0
                and loads.loaded_at > (select max(loaded_at) from state.ingested) - interval 5 minutes
        )
),

-- how far each of them has come, by cluster: what ended before is silent
reached as (
    select stays.cluster, series.source, max(series.last_ms) as last_ms
    from series
    inner join stays using (gpu_uuid)
    where series.source in (from loading)
    group by stays.cluster, series.source
),

holes as materialized (
    select
        holes.*,
        series.last_ms,
        series.source
    from marts.telemetry_gaps as holes
    inner join series using (gpu_uuid)
    left join reached on holes.cluster = reached.cluster and series.source = reached.source
    where
        series.first_ms < holes.end_ms
        and not coalesce(
            series.last_ms <= holes.start_ms + 1 and from_ms(series.last_ms) >= from_ms(reached.last_ms) - interval 5 minutes, false
        )
),

intervals as (
    select readings.gpu_uuid, quantile_disc(intervals.interval_ms, 0.5) as interval_ms
    from intermediate.int_sample_intervals as intervals
    inner join state.reading_series as readings using (series)
    where
        readings.gpu_uuid in (select gpu_uuid from holes)
        and intervals.hour_ms >= scope_from_ms() - one_day_ms()
        and intervals.hour_ms < scope_to_ms()
    group by readings.gpu_uuid
),

-- how many GPUs of each node are there and how many of them are silent, over time
node_cells as materialized (
    select
        cluster,
        node,
        at_ms as start_ms,
        lead(at_ms) over of_node as end_ms,
        sum(present) over of_node as present,
        sum(silent) over of_node as silent
    from (
        select cluster, node, at_ms, sum(present) as present, sum(silent) as silent
        from (
            select cluster, node, start_ms as at_ms, 1 as present, 0 as silent from stays
            union all
            select cluster, node, end_ms, -1, 0 from stays
            union all
            select cluster, node, start_ms, 0, 1 from holes
            union all
            select cluster, node, end_ms, 0, -1 from holes
        )
        group by cluster, node, at_ms
    )
    window of_node as (partition by cluster, node order by at_ms)
),

cluster_cells as materialized (
    select
        cluster,
        at_ms as start_ms,
        lead(at_ms) over of_cluster as end_ms,
        sum(change) over of_cluster as silent
    from (
        select cluster, at_ms, sum(change) as change
        from (
            select cluster, start_ms as at_ms, 1 as change from node_cells where silent = present and present > 0
            union all
            select cluster, end_ms, -1 from node_cells where silent = present and present > 0
        )
        group by cluster, at_ms
    )
    window of_cluster as (partition by cluster order by at_ms)
),

all_silent as materialized (
    select cells.cluster, cells.start_ms, cells.end_ms
    from cluster_cells as cells
    inner join (select cluster, count(distinct node) as nodes from stays group by cluster) as sizes using (cluster)
    where sizes.nodes > 1 and cells.silent = sizes.nodes and cells.end_ms > cells.start_ms
),

-- what of a hole its neighbours saw
seen_holes as (
    select
        holes.cluster,
        holes.node,
        holes.gpu_uuid,
        holes.start_ms,
        any_value(holes.end_ms) as end_ms,
        any_value(holes.last_ms) as last_ms,
        any_value(holes.source) as source,
        sum(greatest(0, least(cells.end_ms, holes.end_ms) - greatest(cells.start_ms, holes.start_ms))) as seen_ms
    from holes
    inner join node_cells as cells
        on holes.cluster = cells.cluster
        and holes.node = cells.node
        and cells.start_ms < holes.end_ms
        and cells.end_ms > holes.start_ms
        and cells.silent < cells.present
    group by holes.cluster, holes.node, holes.gpu_uuid, holes.start_ms
),

-- cells of one silence touch
node_holes as (
    select
        cluster,
        node,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        max(present)::bigint as gpus,
        sum(present * (end_ms - start_ms))::bigint as gpu_ms
    from (
        select *, count_if(is_new) over (partition by cluster, node order by start_ms) as hole
        from (
            select
                *,
                coalesce(start_ms > lag(end_ms) over (partition by cluster, node order by start_ms), true) as is_new
            from node_cells
            where silent = present and present > 0 and end_ms > start_ms
        )
    )
    group by cluster, node, hole
),

planned as (
    select cluster, node, start_ms, coalesce(end_ms, forever_ms()) as end_ms, state
    from intermediate.int_node_states
    where source is not null and state in ('powered_off', 'maintenance', 'down')
),

found as (
    select
        'silent_gpu' as rule, holes.cluster, holes.node, holes.gpu_uuid, holes.start_ms, holes.end_ms, 1 as gpus,
        holes.end_ms - holes.start_ms as gpu_ms, holes.seen_ms, holes.last_ms, holes.source as sources, intervals.interval_ms
    from seen_holes as holes
    left join intervals using (gpu_uuid)
    union all
    select
        'silent_node', holes.cluster, holes.node, null, holes.start_ms, holes.end_ms, holes.gpus, holes.gpu_ms,
        any_value(holes.end_ms - holes.start_ms) - coalesce(sum(
            greatest(0, least(holes.end_ms, all_silent.end_ms) - greatest(holes.start_ms, all_silent.start_ms))
        ) filter (where all_silent.start_ms is not null), 0),
        any_value(of_node.last_ms), any_value(of_node.sources), any_value(of_node.interval_ms)
    from node_holes as holes
    inner join (
        select
            stays.cluster, stays.node, max(series.last_ms) as last_ms, median(intervals.interval_ms) as interval_ms,
            string_agg(distinct series.source, ', ' order by series.source) as sources
        from stays
        inner join series using (gpu_uuid)
        left join intervals using (gpu_uuid)
        group by stays.cluster, stays.node
    ) as of_node using (cluster, node)
    left join all_silent
        on holes.cluster = all_silent.cluster
        and all_silent.start_ms < holes.end_ms
        and all_silent.end_ms > holes.start_ms
    group by all
    union all
    select
        'silent_source', all_silent.cluster, null, null, all_silent.start_ms, all_silent.end_ms, of_cluster.gpus,
        of_cluster.gpus * (all_silent.end_ms - all_silent.start_ms), all_silent.end_ms - all_silent.start_ms,
        of_cluster.last_ms, of_cluster.sources, of_cluster.interval_ms
    from all_silent
    inner join (
        select
            stays.cluster, count(distinct stays.gpu_uuid) as gpus, max(series.last_ms) as last_ms,
            median(intervals.interval_ms) as interval_ms,
            string_agg(distinct series.source, ', ' order by series.source) as sources
        from stays
        inner join series using (gpu_uuid)
        left join intervals using (gpu_uuid)
        group by stays.cluster
    ) as of_cluster using (cluster)
),

long_enough as (
    select
        *,
        row_number() over () as hole,
        last_ms <= start_ms + 1 as is_open,
        -- before the window, where it was not read again
        case when last_ms <= start_ms then last_ms else start_ms end as since_ms
    from found
    where
        (rule = 'silent_gpu' or last_ms <= start_ms + 1 or seen_ms >= threshold('silent_restart_ms'))
        and seen_ms >= case
            when rule = 'silent_gpu' and last_ms <= start_ms + 1 then threshold('silent_gpu_min_ms')
            else threshold('silent_min_ms')
        end
        and seen_ms >= threshold('silent_min_scrapes') * coalesce(interval_ms, 0)
),

states as (
    select found.hole, arg_max(planned.state, planned.start_ms) as state
    from long_enough as found
    inner join planned
        on found.cluster = planned.cluster
        and found.node = planned.node
        and planned.start_ms < found.end_ms
        and planned.end_ms > found.start_ms - 60000
    group by found.hole
),

-- a cluster whose nodes are all off or in maintenance, nearly all of the time, has no monitoring to repair
resting as (
    select hole
    from (
        select
            found.hole,
            -- without any, least() would have the whole of it
            coalesce(sum(least(planned.end_ms, found.end_ms) - greatest(planned.start_ms, found.start_ms))
                filter (where planned.node is not null), 0) >= 0.9 * (found.end_ms - found.start_ms) as is_planned
        from long_enough as found
        inner join (select distinct cluster, node from stays) as nodes using (cluster)
        left join planned
            on nodes.cluster = planned.cluster
            and nodes.node = planned.node
            and planned.state in ('powered_off', 'maintenance')
            and planned.start_ms < found.end_ms
            and planned.end_ms > found.start_ms
        where found.rule = 'silent_source'
        group by found.hole, found.start_ms, found.end_ms, nodes.node
    )
    group by hole
    having bool_and(is_planned)
),

errors as (
    select found.hole, any_value(events.code order by events.event_at) as code
    from long_enough as found
    inner join marts.gpu_events as events
        on found.gpu_uuid = events.gpu_uuid
        and (events.kind = 'off_the_bus' or events.code in (79, 167))
        and epoch_ms(events.event_at) between found.since_ms - ten_minutes_ms() and found.end_ms
    group by found.hole
),

owners as (
    select
        found.hole,
        any_value(owners.run_key order by holds.start_ms) as run_key,
        any_value(owners.team order by holds.start_ms) as team
    from long_enough as found
    inner join intermediate.int_holds as holds
        on found.gpu_uuid = holds.gpu_uuid
        and holds.start_ms <= found.start_ms
        and coalesce(holds.end_ms, forever_ms()) > found.start_ms
    inner join intermediate.int_job_run_owners as owners using (job_run_key)
    group by found.hole
),

last_values as (
    select
        found.hole,
        arg_max(metrics.power_w.last, metrics.start_ms) as power_w
    from (select *, since_ms // one_hour_ms() * one_hour_ms() as hour_ms from long_enough where gpu_uuid is not null) as found
    inner join intermediate.int_gpu_metrics as metrics
        on found.gpu_uuid = metrics.gpu_uuid
        and found.hour_ms = metrics.hour_ms
        and metrics.start_ms <= found.since_ms
    group by found.hole
)

select
    found.rule,
    found.cluster,
    found.node,
    found.gpu_uuid,
    owners.run_key,
    owners.team,
    from_ms(found.since_ms) as start_at,
    case when not found.is_open then from_ms(found.end_ms) end as end_at,
    found.gpus::bigint as gpus,
    found.sources,
    found.gpu_ms::bigint as gpu_ms,
    null::double as cost,
    case
        when found.rule = 'silent_gpu' and owners.run_key is not null then 'allocated'
        when found.rule = 'silent_source' and found.seen_ms >= threshold('no_data_page_ms') then 'no_data'
    end as effect,
    not found.is_open as is_over,
    found.seen_ms / found.interval_ms as score,
    case when errors.hole is not null or states.state = 'down' then 'Confirmed' else 'Likely' end as confidence,
    case found.rule
        when 'silent_gpu' then 'no reading of the GPU for ' || printf('%.0f', found.seen_ms / 1000.0)
            || ' s while other GPUs of the node were read'
        when 'silent_node' then 'no reading of any of ' || found.gpus || ' GPUs of the node for '
            || printf('%.0f', found.seen_ms / 1000.0) || ' s'
        else 'no reading of any of ' || found.gpus || ' GPUs by ' || found.sources || ' for '
            || printf('%.0f', found.seen_ms / 1000.0) || ' s'
    end
    || coalesce(', ' || printf('%.0f', found.seen_ms / found.interval_ms) || ' sampling intervals', '')
    || coalesce('; last power ' || printf('%.0f', last_values.power_w) || ' W', '')
    || coalesce('; Xid ' || errors.code, case when errors.hole is not null then '; off the bus' end, '')
    || coalesce('; node state: ' || states.state, '') as evidence
from long_enough as found
left join states using (hole)
left join errors using (hole)
left join owners using (hole)
left join last_values using (hole)
where
    not (found.rule = 'silent_node' and coalesce(states.state in ('powered_off', 'maintenance'), false))
    and found.hole not in (from resting)
    -- a cluster has no owner: it is shown where nobody asks for one
    and of_owner(owners.team, null, owners.run_key, null)
