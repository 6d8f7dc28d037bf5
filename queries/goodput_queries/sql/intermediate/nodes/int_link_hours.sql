-- Network ports hour by hour: what their counters did inside the hour, and their state.
-- grain: source, cluster, node, kind, device, port, hour_ms
-- samples: number of readings; state_samples, up_samples: of them those with a state, and those that are up
-- was_up: at the last reading with a state
-- rx_bytes ... link_downs: counters: first, last, gain (increase inside the hour) and n
-- speed_bytes_per_s: the last that is known
-- line_rate_ratio: what it received or sent, whichever is more, of what its speed allows; null: speed or ten minutes are not known
-- materialised: hourly, since the page of the network looks at all ports of the fleet
-- skip_if_empty: raw.link_samples
with rolled_up as (
    select
        source,
        cluster,
        node,
        kind,
        device,
        port,
        ts_ms // one_hour_ms() * one_hour_ms() as hour_ms,
        count(*)::integer as samples,
        count(is_up)::integer as state_samples,
        count_if(is_up)::integer as up_samples,
        arg_max(is_up, ts) as was_up,
        min(ts_ms) as first_ms,
        max(ts_ms) as last_ms,
        rolled_up_counter(columns([
            'rx_bytes', 'tx_bytes', 'rx_errors', 'tx_errors', 'rx_drops', 'tx_drops', 'symbol_errors',
            'link_recoveries', 'link_downs'
        ]), ts),
        arg_max(speed_bytes_per_s, ts) as speed_bytes_per_s
    from staging.stg_link_samples
    where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
    group by source, cluster, node, kind, device, port, ts_ms // one_hour_ms()
)

select
    * exclude (first_ms),
    case
        when last_ms - first_ms >= ten_minutes_ms()
            then 1000 * greatest(rx_bytes.gain, tx_bytes.gain) / (last_ms - first_ms) / speed_bytes_per_s
    end as line_rate_ratio
from rolled_up
