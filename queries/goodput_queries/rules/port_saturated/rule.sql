-- skip_if_empty: intermediate.int_link_hours where line_rate_ratio >= threshold('port_full_ratio')
with roots as (
    select
        cluster, node,
        arg_max(value, at_ms) filter (where setting = 'infiniband.pci_root') as of_ports,
        arg_max(value, at_ms) filter (where setting = 'gpu.pci_root') as of_gpus
    from staging.stg_node_settings
    where at_ms < scope_to_ms()
    group by cluster, node
)

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
    ) || coalesce(
        '; PCI root shared with '
        || nullif(array_to_string(list_transform(
            list_filter(
                string_split(of_gpus, '; '),
                lambda gpus: starts_with(gpus, 'pci') and list_bool_or(list_transform(
                    string_split(of_ports, '; '),
                    lambda ports: split_part(ports, ': ', 1) = split_part(gpus, ': ', 1)
                    and (not contains(ports, ': ') or list_contains(string_split(split_part(ports, ': ', 2), ','), device))
                ))
            ),
            lambda gpus: if(contains(gpus, ': '), 'GPU ' || split_part(gpus, ': ', 2), 'all GPUs')
        ), ''), ''),
        ''
    ) as evidence,
    case
        when line_rate_ratio > threshold('port_over_ratio')
            then 'Check what speed the port reports: it carries more than that'
    end as what_to_do
from intermediate.int_link_hours
left join roots using (cluster, node)
where
    line_rate_ratio >= threshold('port_full_ratio')
    and hour_ms > scope_from_ms() - one_hour_ms()
    and hour_ms < scope_to_ms()
    and in_place(cluster, node, null, null)
    and sees_all_teams()
