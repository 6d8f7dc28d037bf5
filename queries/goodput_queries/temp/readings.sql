-- The readings of this pass beside the row that is stored before each: a load is stored series by series, so
-- that the row before is most often the reading before, and nothing need be sorted.
-- grain: series, ts_ms
-- inline: asked in passing
-- place: in the order of the table
-- before_ms, was_active: of the row before
-- is_begin: the row before is not an earlier reading of the series: a run of rows begins
with in_passing as (
    select
        * exclude (gpu_uuid),
        row_number() over () as place,
        lag(series) over () as before_series,
        lag(ts_ms) over () as before_ms,
        lag(is_active) over () as was_active
    from temp.reading_states
)

select
    *,
    coalesce(series <> before_series or ts_ms <= before_ms, true) as is_begin
from in_passing
