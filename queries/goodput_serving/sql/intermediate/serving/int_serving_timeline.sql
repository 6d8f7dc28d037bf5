-- What each engine of a serving endpoint did, as the ledger classifies it: start-up, standby, and of the time in which it
-- had requests the parts within the objective, within it or not, not within it, and without an objective.
-- grain: cluster, endpoint, engine, start_ms
-- category, phase: of the ledger, where no job event says otherwise
-- start_ms, end_ms: inside ten minutes the parts of the time with requests lie in the order above, whenever they were
-- method: requests (a log, exact), histograms (bounds); null: no latency is known, or none is needed
-- materialised: hourly, since it needs a pass over all samples and outlives them
-- skip_if_empty: staging.stg_serving_endpoints
-- change_tracking: start_ms, end_ms
with active as (
    select
        activity.*,
        activity.start_ms // ten_minutes_ms() * ten_minutes_ms() as cell_ms,
        coalesce(sum(activity.end_ms - activity.start_ms) over same, 0)::bigint as busy_ms,
        coalesce(sum(activity.end_ms - activity.start_ms) over before_it, 0)::bigint as done_ms
    from temp.serving_activity as activity
    where activity.state = 3
    window
        same as (partition by activity.engine_id, activity.is_logged, activity.start_ms // ten_minutes_ms()),
        before_it as (
            partition by activity.engine_id, activity.is_logged, activity.start_ms // ten_minutes_ms() order by activity.start_ms
            rows between unbounded preceding and 1 preceding
        )
),

shared as (
    select
        active.*,
        coalesce(shares.lo_ratio, 0) as lo_ratio,
        coalesce(shares.hi_ratio, 1 - coalesce(shares.none_ratio, 1)) as hi_ratio,
        coalesce(shares.none_ratio, 1) as none_ratio,
        shares.method
    from active
    left join temp.serving_shares as shares using (engine_id, cell_ms, is_logged)
),

-- moments of the time with requests, less what of it was before this stretch
ends as (
    select
        *,
        least(end_ms, greatest(start_ms, start_ms - done_ms + round(busy_ms * lo_ratio)::bigint)) as within_ms,
        least(end_ms, greatest(start_ms, start_ms - done_ms + round(busy_ms * (lo_ratio + none_ratio))::bigint)) as none_ms,
        least(end_ms, greatest(start_ms, start_ms - done_ms + round(busy_ms * (hi_ratio + none_ratio))::bigint)) as risk_ms
    from shared
),

parts as (
    select
        engine_id,
        method,
        unnest([3, 6, 4, 5]) as number,
        unnest([start_ms, within_ms, none_ms, risk_ms]) as start_ms,
        unnest([within_ms, none_ms, risk_ms, end_ms]) as end_ms
    from ends
    union all
    select engine_id, null, state, start_ms, end_ms
    from temp.serving_activity
    where state <> 3
),

marked as (
    select
        *,
        (engine_id, number, method, start_ms, start_ms // one_hour_ms()) is distinct from lag(
            (engine_id, number, method, end_ms, start_ms // one_hour_ms())
        ) over (order by engine_id, start_ms) as is_new
    from parts
    where end_ms > start_ms
),

stretches as (
    select engine_id, number, method, min(start_ms) as start_ms, max(end_ms) as end_ms
    from (
        select *, count_if(is_new) over (order by engine_id, start_ms rows unbounded preceding) as stretch
        from marked
    )
    group by engine_id, number, method, stretch
)

select
    engines.cluster,
    engines.endpoint,
    engines.engine,
    stretches.start_ms // one_hour_ms() * one_hour_ms() as hour_ms,
    serving_category(stretches.number) as category,
    serving_phase(stretches.number) as phase,
    stretches.method,
    stretches.start_ms,
    stretches.end_ms
from stretches
inner join temp.serving_engines as engines using (engine_id)
