-- skip_if_empty: intermediate.int_link_hours where line_rate_ratio >= threshold('port_full_ratio')
select
    cluster,
    node,
    device || coalesce(' port ' || nullif(port, ''), '') as detail,
    from_ms(hour_ms) as start_at,
    from_ms(last_ms) as end_at,
    'Confirmed' as confidence,
    detail || printf(
        ' carried %.1f GB/s in an hour, %.0f %% of its speed of %.1f GB/s',
        line_rate_ratio * speed_bytes_per_s / 1e9, 100 * line_rate_ratio, speed_bytes_per_s / 1e9
    ) as evidence,
    case
        when line_rate_ratio > threshold('port_over_ratio')
            then 'Check what speed the port reports: it carries more than that'
    end as what_to_do
from intermediate.int_link_hours
where
    line_rate_ratio >= threshold('port_full_ratio')
    and hour_ms > scope_from_ms() - one_hour_ms()
    and hour_ms < scope_to_ms()
    and in_place(cluster, node, null, null)
    and sees_all_teams()
