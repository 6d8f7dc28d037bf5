-- Executing idle by team: the runs of marts.executing_idle, added up.
-- grain: team
-- access: team
-- skip_if_empty: marts.executing_idle
-- team: null: of no known job run
-- held_ms: allocated time with readings of memory; idle_ms: of it executing idle; idle_ratio: idle_ms / held_ms
-- power_w, energy_kwh, measured_ms: of ten minutes that were all idle, with a power reading
select
    team,
    sum(columns(['held_ms', 'idle_ms', 'measured_ms']))::bigint,
    sum(idle_ms) / sum(held_ms) as idle_ratio,
    sum(power_w * measured_ms) / nullif(sum(measured_ms), 0) as power_w,
    sum(energy_kwh) as energy_kwh
from marts.executing_idle
group by team
