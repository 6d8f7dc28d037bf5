-- skip_if_empty: marts.link_errors
select
    cluster,
    node,
    device || coalesce(' port ' || nullif(port, ''), '') as detail,
    busiest_at as start_at,
    busiest_at + interval 1 hour as end_at,
    'Confirmed' as confidence,
    detail || printf(
        ' carried %.1f GB/s for an hour, %.0f %% of its speed of %.1f GB/s',
        line_rate_ratio * speed_bytes_per_s / 1e9, 100 * line_rate_ratio, speed_bytes_per_s / 1e9
    ) as evidence,
    case
        when line_rate_ratio > threshold('port_over_ratio')
            then 'Check what speed the port reports: it carries more than that'
    end as what_to_do
from marts.link_errors
where line_rate_ratio >= threshold('port_full_ratio') and sees_all_teams()
