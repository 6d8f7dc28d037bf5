-- Times at which the link of a network port of the scope's nodes was down: by its state, or by its counter of downs where
-- it was up again at the next reading.
-- grain: cluster, node, kind, device, port, start_at
-- skip_if_empty: raw.link_samples
-- after_at: the last reading before it, at which the link was up; start_at: the reading that shows it
-- end_at: the reading at which it is up again; null: it is still down
-- is_seen_down: a reading found it down; else only the counter of downs rose
with troubled as (
    select cluster, node, kind, device, port from marts.link_errors where trouble in ('down', 'lost')
),

readings as (
    select
        samples.*,
        lag(samples.ts_ms) over ports as before_ms,
        lag(samples.is_up) over ports as before_up,
        lag(samples.link_downs) over ports as before_downs,
        min(case when samples.is_up then samples.ts_ms end) over (
            partition by samples.source, samples.cluster, samples.node, samples.kind, samples.device, samples.port
            order by samples.ts_ms rows between current row and unbounded following
        ) as up_ms
    from staging.stg_link_samples as samples
    semi join troubled using (cluster, node, kind, device, port)
    where
        samples.ts >= from_ms(scope_from_ms() - one_hour_ms())
        and samples.ts < scope_to_at()
    window ports as (
        partition by samples.source, samples.cluster, samples.node, samples.kind, samples.device, samples.port
        order by samples.ts_ms
    )
)

select
    cluster,
    node,
    kind,
    device,
    port,
    from_ms(before_ms) as after_at,
    from_ms(ts_ms) as start_at,
    from_ms(up_ms) as end_at,
    not coalesce(is_up, true) as is_seen_down
from readings
where
    before_up is distinct from false
    and before_ms is not null
    and (not is_up or counter_increase(link_downs, before_downs) > 0)
    and in_window(before_ms, coalesce(up_ms, ts_ms))
-- two sources of one port report one event
qualify row_number() over (
    partition by cluster, node, kind, device, port, ts_ms // 60000 order by source
) = 1
