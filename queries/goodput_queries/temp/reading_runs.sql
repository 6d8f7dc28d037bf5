-- Runs of stored readings of one series in the order of time.
-- grain: series, first_ms
-- previous_ms, was_active: of the last reading of the run before in time
-- is_tangled: runs of the series overlap, so that no run tells which reading follows which
with runs as (
    select
        series,
        reader,
        first_ms,
        first_active,
        lead(last_ms) over as_stored as last_ms,
        lead(last_active) over as_stored as last_active
    from temp.reading_begins
    window as_stored as (order by place)
),

last_begin as (
    select begins.series, known.gpu_uuid, begins.first_ms
    from temp.reading_begins as begins
    inner join raw.reading_series as known using (series)
    order by begins.place desc
    limit 1
),

-- after the last run no other begins: it ends with its series, or is found to be tangled
last_run as (
    select
        any_value(states.series) as series,
        max(states.ts_ms) as last_ms,
        arg_max(states.is_active, states.ts_ms) as last_active
    from temp.reading_states as states
    inner join last_begin
        on states.series = last_begin.series
        -- zones are known for it, not for what is computed from it
        and states.gpu_uuid = last_begin.gpu_uuid
        and states.ts_ms >= last_begin.first_ms
),

in_order as (
    select
        runs.series,
        reader,
        first_ms,
        first_active,
        coalesce(runs.last_ms, last_run.last_ms) as last_ms,
        lag(coalesce(runs.last_ms, last_run.last_ms)) over by_time as previous_ms,
        lag(coalesce(runs.last_active, last_run.last_active)) over by_time as was_active
    from runs
    left join last_run on runs.series = last_run.series and runs.last_ms is null
    window by_time as (partition by runs.series order by first_ms)
)

select
    *,
    -- of runs in the order of their beginnings some two overlap only where two neighbours do
    coalesce(bool_or(previous_ms >= first_ms) over (partition by series), false) as is_tangled
from in_order
