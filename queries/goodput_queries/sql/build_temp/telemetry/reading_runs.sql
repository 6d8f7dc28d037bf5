-- Runs of stored readings of one series in the order of time.
-- grain: series, first_ms
-- previous_ms, was_active: of the last reading of the run before in time
-- is_tangled: runs of the series overlap, so that the next row is not always the next reading
with runs as (
    select
        * exclude (last_ms, last_active),
        lead(place) over as_stored as next_place,
        lead(last_ms) over as_stored as last_ms,
        lead(last_active) over as_stored as last_active
    from temp.reading_begins
    window as_stored as (order by place)
),

-- the last run of each part of the table is not seen to end
open_runs as (
    select runs.place, runs.next_place, runs.series, known.gpu_uuid
    from runs
    inner join state.reading_series as known using (series)
    where runs.last_ms is null
),

ends as (
    select
        open_runs.place,
        max(states.ts_ms) as last_ms,
        arg_max(states.is_active, states.ts_ms) as last_active
    from temp.reading_states as states
    inner join open_runs
        on states.series = open_runs.series
        -- zones are known for it, not for what is computed from it
        and states.gpu_uuid = open_runs.gpu_uuid
        and states.place >= open_runs.place
        and states.place < coalesce(open_runs.next_place, forever_ms())
    group by open_runs.place
),

whole_runs as (
    select
        runs.series,
        runs.reader,
        runs.first_ms,
        runs.first_active,
        coalesce(runs.last_ms, ends.last_ms) as last_ms,
        coalesce(runs.last_active, ends.last_active) as last_active
    from runs
    left join ends using (place)
),

in_order as (
    select
        * exclude (last_active),
        case when lag(series) over by_time = series then lag(last_ms) over by_time end as previous_ms,
        case when lag(series) over by_time = series then lag(last_active) over by_time end as was_active
    from whole_runs
    window by_time as (order by series, first_ms)
)

select
    *,
    -- of runs in the order of their beginnings some two overlap only where two neighbours do
    series in (select series from in_order where previous_ms >= first_ms) as is_tangled
from in_order
