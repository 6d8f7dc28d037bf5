-- What each engine did in this pass: by the request log where there is one, else by samples.
-- grain: engine_id, start_ms
-- state: 1 the model loads, 2 no request runs or waits, 3 one does
-- is_logged: by the request log
with sampled as (
    select
        *,
        greatest(
            before_ms,
            ts_ms - cast(floor(usual_ms * threshold('sample_reach')) as bigint)
        ) as covered_ms
    from temp.serving_scrapes
    where before_ms is not null and ts_ms > build_from_ms() and before_ms < build_to_ms()
),

by_samples as (
    select engine_id, case when is_busy then 3 else 2 end as state, covered_ms as start_ms, ts_ms as end_ms
    from sampled
    union all
    -- an engine that is idle may fall silent: what is counted shows that nothing happened. What began again was loading.
    select engine_id, case when is_restart then 1 else 2 end, before_ms, covered_ms
    from sampled
    where covered_ms > before_ms and (is_restart or is_counted and not is_busy and not was_busy)
),

requests as (
    select
        *,
        coalesce(start_ms > max(end_ms) over before_it, true) as is_new,
        coalesce(
            start_ms > max(end_ms) over before_it + threshold('serving_silent_max_ms'), true
        ) as is_after_silence
    from temp.served_requests
    where endpoint <> ''
    window before_it as (
        partition by cluster, endpoint order by start_ms, end_ms rows between unbounded preceding and 1 preceding
    )
),

islands as (
    select
        cluster, endpoint,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        bool_or(is_after_silence) as is_after_silence
    from (
        select *, count_if(is_new) over (
            partition by cluster, endpoint order by start_ms, end_ms rows unbounded preceding
        ) as island
        from requests
    )
    group by cluster, endpoint, island
),

by_requests as (
    select cluster, endpoint, 3 as state, start_ms, end_ms from islands
    union all
    select cluster, endpoint, 2, before_ms, start_ms
    from (
        select *, lag(end_ms) over (partition by cluster, endpoint order by start_ms) as before_ms from islands
    )
    where not is_after_silence
),

-- one sum has both: what the request log says counts, and where it says nothing the samples do
changes as (
    select engine_id, unnest([start_ms, end_ms]) as at_ms, unnest([state, -state]) as change
    from by_samples
    union all
    select engines.engine_id, unnest([start_ms, end_ms]), unnest([4 * state, -4 * state])
    from by_requests
    inner join temp.serving_engines as engines using (cluster, endpoint)
    union all
    select engine_id, unnest(range(build_from_ms(), build_to_ms() + 1, ten_minutes_ms())), 0
    from temp.serving_engines as engines
),

moments as (
    select engine_id, greatest(build_from_ms(), least(build_to_ms(), at_ms)) as at_ms, sum(change)::bigint as change
    from changes
    group by all
),

states as (
    select
        engine_id,
        at_ms as start_ms,
        lead(at_ms) over (partition by engine_id order by at_ms) as end_ms,
        sum(change) over (partition by engine_id order by at_ms rows unbounded preceding)::bigint as layers
    from moments
)

select
    engine_id,
    case when layers >= 4 then layers // 4 else layers end as state,
    layers >= 4 as is_logged,
    start_ms,
    end_ms
from states
where layers > 0 and end_ms is not null
