-- Network ports of the scope's nodes in the hours that the window touches: traffic, errors, and whether the link was lost.
-- Hosts that no other source knows are not of the fleet.
-- grain: cluster, node, kind, device, port
-- skip_if_empty: intermediate.int_link_hours
-- kind: ethernet, infiniband (RoCE adapters report as such)
-- trouble: down (was up, is down), lost (went down and came back), errors, drops; null: none was seen
-- is_up: at the last reading; null: the state is not reported
-- down_ratio: share of readings with a state that are not up; of a port that was never up all are
-- rx_bytes, tx_bytes: received and sent
-- errors: packets with errors, received or sent; symbol_errors, link_recoveries: InfiniBand; drops: packets dropped
-- link_downs: times the link went down, by the port's counter. A counter that the port does not have is null
-- speed_bytes_per_s: null where it is not known
-- line_rate_ratio: what it received or sent in its busiest hour, whichever is more, of what its speed allows
with in_window as not materialized (
    select *
    from intermediate.int_link_hours
    where
        hour_ms > scope_from_ms() - one_hour_ms()
        and hour_ms < scope_to_ms()
        and in_place(cluster, node, null, null)
),

-- numbered, since five names take several times as long to sort by
links as materialized (
    select *, (row_number() over ())::integer as link
    from (
        select cluster, node, kind, device, port, source
        from in_window
        semi join staging.stg_node_clusters as known on in_window.node = known.node
        group by cluster, node, kind, device, port, source
        qualify
            row_number() over (partition by cluster, node, kind, device, port order by sum(samples) desc, source) = 1
    )
),

hours as (
    select links.link, in_window.* exclude (cluster, node, kind, device, port, source)
    from in_window
    inner join links using (cluster, node, kind, device, port, source)
),

-- one window for all counters, since each costs as much as the rest of the query
follows as (
    select
        *,
        lag({
            'rx_bytes': rx_bytes.last,
            'tx_bytes': tx_bytes.last,
            'rx_errors': rx_errors.last,
            'tx_errors': tx_errors.last,
            'rx_drops': rx_drops.last,
            'tx_drops': tx_drops.last,
            'symbol_errors': symbol_errors.last,
            'link_recoveries': link_recoveries.last,
            'link_downs': link_downs.last
        }) over (partition by link order by hour_ms) as before
    from hours
),

gains as (
    select
        *,
        gain_since(rx_bytes, before.rx_bytes) as rx,
        gain_since(tx_bytes, before.tx_bytes) as tx,
        gain_since(rx_errors, before.rx_errors) as errors_received,
        gain_since(tx_errors, before.tx_errors) as errors_sent,
        gain_since(rx_drops, before.rx_drops) as drops_received,
        gain_since(tx_drops, before.tx_drops) as drops_sent,
        gain_since(symbol_errors, before.symbol_errors) as symbols,
        gain_since(link_recoveries, before.link_recoveries) as recoveries,
        gain_since(link_downs, before.link_downs) as downs
    from follows
),

ports as (
    select
        link,
        arg_max(was_up, hour_ms) as is_up,
        1 - sum(up_samples) / nullif(sum(state_samples), 0) as down_ratio,
        sum(rx)::bigint as rx_bytes,
        sum(tx)::bigint as tx_bytes,
        sum_of_known(sum(errors_received), sum(errors_sent))::bigint as errors,
        sum(symbols)::bigint as symbol_errors,
        sum(recoveries)::bigint as link_recoveries,
        sum_of_known(sum(drops_received), sum(drops_sent))::bigint as drops,
        sum(downs)::bigint as link_downs,
        arg_max(speed_bytes_per_s, hour_ms) as speed_bytes_per_s,
        max(line_rate_ratio) as line_rate_ratio,
        sum(samples)::bigint as samples,
        max(last_ms) as last_ms
    from gains
    group by link
)

select
    * exclude (link, source, last_ms),
    case
        when not is_up and down_ratio < 1 then 'down'
        when link_downs > 0 or (down_ratio > 0 and down_ratio < 1) then 'lost'
        when errors > 0 or symbol_errors > 0 or link_recoveries > 0 then 'errors'
        when drops > 0 then 'drops'
    end as trouble,
    from_ms(last_ms) as last_at
from ports
inner join links using (link)
