-- Readings whose predecessor is not the previous row: of series whose runs overlap in time, and of GPUs that two
-- sources sample.
-- grain: series, ts_ms
select states.series, states.reader, states.ts_ms, states.is_active
from temp.reading_states as states
inner join temp.pass_series as series using (series)
where
    (series.has_rivals or series.is_tangled)
    -- zones are known for it, not for what is computed from it
    and states.gpu_uuid in (select gpu_uuid from temp.pass_series where has_rivals or is_tangled)
