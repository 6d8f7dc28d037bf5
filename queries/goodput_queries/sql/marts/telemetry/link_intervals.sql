-- Traffic of network ports of the scope's nodes between one reading and the next, at most an hour.
-- grain: cluster, node, kind, device, port, end_ms
-- rx_bytes_per_s, tx_bytes_per_s: null where the counter is not reported
-- is_up: at the end
with readings as (
    select *, count(*) over (partition by cluster, node, kind, device, port, source) as in_all
    from staging.stg_link_samples
    where
        ts >= from_ms(scope_from_ms() - one_hour_ms())
        and ts < scope_to_at()
        and in_place(cluster, node, null, null)
),

changes as (
    select
        *,
        lag(ts_ms) over ports as start_ms,
        counter_increase(rx_bytes, lag(rx_bytes) over ports) as received,
        counter_increase(tx_bytes, lag(tx_bytes) over ports) as sent
    from (
        select *
        from readings
        qualify dense_rank() over (
            partition by cluster, node, kind, device, port order by in_all desc, source
        ) = 1
    )
    window ports as (partition by cluster, node, kind, device, port order by ts_ms)
)

select
    cluster,
    node,
    kind,
    device,
    port,
    start_ms,
    ts_ms as end_ms,
    1000 * received / (ts_ms - start_ms) as rx_bytes_per_s,
    1000 * sent / (ts_ms - start_ms) as tx_bytes_per_s,
    is_up
from changes
where ts_ms > start_ms and ts_ms - start_ms <= one_hour_ms()
