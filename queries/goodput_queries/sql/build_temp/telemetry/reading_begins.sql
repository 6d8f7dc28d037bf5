-- The first readings of runs: rows of one series in the order of time. A day in one file is one run a series;
-- readings from single scrapes are runs of one reading.
-- grain: series, first_ms
-- last_ms, last_active: of the run stored before it, whose end this beginning is
select
    series,
    reader,
    place,
    ts_ms as first_ms,
    is_active as first_active,
    before_ms as last_ms,
    was_active as last_active
from temp.readings
where is_begin
-- rows in no order are written by all cores
order by place
