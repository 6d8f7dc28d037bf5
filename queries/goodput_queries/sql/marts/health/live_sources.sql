-- State of each live source: whether it answers, the age of its last answer, the rows it loads.
-- Sources that were removed, or not polled for a week, are not listed.
-- grain: source, origin
-- skip_if_empty: state.source_status
-- state: ok; late: over 2 intervals since the last success; stale: over 5, or not polled; failing: the
--   last poll failed; waiting: the first poll has not ended
-- answered_at: when the last successful poll began
-- age_s: since then
-- age_intervals: the same in intervals of the source
-- failing_since_at: null where the last poll was good
-- failures: in a row
-- rows_last_hour: new rows loaded in the last hour; of a folder those of all its files
with statuses as (
    -- a clock that was set back makes no poll of the future
    select
        * replace (
            least(asked_at, now_at) as asked_at,
            if(answered_at > now_at, now_at, answered_at) as answered_at,
            if(failing_since_at > now_at, now_at, failing_since_at) as failing_since_at
        ),
        count(*) over (partition by source) as origins
    from (select *, get_current_timestamp()::timestamp as now_at from state.source_status)
    where asked_at > now_at - interval 7 days and retired_at is null
),

recent as (
    select source, origin, sum(rows_new)::bigint as rows_new
    from state.ingested
    where loaded_at > get_current_timestamp()::timestamp - interval 1 hour
    group by source, origin
),

brought as (
    select statuses.source, statuses.origin, sum(recent.rows_new)::bigint as rows_last_hour
    from statuses
    inner join recent
        on statuses.source = recent.source
        and (
            statuses.origins = 1
            or statuses.origin = recent.origin
            or starts_with(recent.origin, rtrim(statuses.origin, '/') || '/')
        )
    group by statuses.source, statuses.origin
),

aged as (
    select
        *,
        date_diff('millisecond', answered_at, now_at) / 1000 as age_s,
        date_diff('millisecond', asked_at, now_at) / 1000 as asked_s
    from statuses
)

select
    aged.* exclude (retired_at, now_at, origins, asked_s),
    case
        -- a failing source is asked at least once a minute, or at its interval
        when aged.asked_s > greatest(5 * aged.interval_s, 300) then 'stale'
        when aged.failures > 0 then 'failing'
        when coalesce(aged.age_s, aged.asked_s) > 5 * aged.interval_s then 'stale'
        when coalesce(aged.age_s, aged.asked_s) > 2 * aged.interval_s then 'late'
        when aged.answered_at is null then 'waiting'
        else 'ok'
    end as state,
    aged.age_s / nullif(aged.interval_s, 0) as age_intervals,
    coalesce(brought.rows_last_hour, 0) as rows_last_hour
from aged
left join brought using (source, origin)
