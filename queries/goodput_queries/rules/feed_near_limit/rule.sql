-- skip_if_empty: raw.power_feeds
select
    feeds.cluster,
    'feed ' || feeds.feed as detail,
    from_ms(scope_start(epoch_ms(clusters.first_at))) as start_at,
    from_ms(scope_end(epoch_ms(clusters.as_of_at))) as end_at,
    'Likely' as confidence,
    printf(
        'up to %.1f kW of %.1f kW, %.1f %%', greatest(peak_w, failover_w) / 1000, capacity_w / 1000,
        100 * greatest(peak_w, failover_w) / capacity_w
    )
    || case when failover_w > peak_w then ', if feed ' || failed_feed || ' failed' else '' end
    || case when read_nodes < feeds.nodes then printf('; %d of %d nodes were read', read_nodes, feeds.nodes) else '' end as evidence
from marts.feed_check as feeds
inner join marts.clusters as clusters using (cluster)
where greatest(peak_w, failover_w) >= threshold('feed_full_ratio') * capacity_w and sees_all_teams()
