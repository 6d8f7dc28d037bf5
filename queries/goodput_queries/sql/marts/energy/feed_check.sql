-- Load of power feeds, and what each would carry if another one failed (N-1), by the ten-minute roll-up. A node on
-- several feeds (`A+B` in the inventory) draws the same from each of them; when one fails, from the others.
-- grain: cluster, feed
-- evaluated: first
-- racks, rack_rows: of its nodes
-- nodes: that the inventory puts on it; single_nodes: of them those on no other feed; read_nodes: with a power reading
-- server_ratio: by which the power of GPUs is multiplied; 1: GPUs alone
-- load_w: mean; peak_w: highest ten minutes
-- failed_feed: the feed whose failure loads this one most; failover_w: the highest ten minutes then; null: it shares no
--  node with another feed
-- capacity_w: null: not configured; margin_w: capacity less the larger of peak and failover; is_exceeded: it is negative
with of_nodes as (
    select
        * exclude (feed),
        list_distinct(list_filter(
            list_transform(string_split(feed, '+'), lambda name: trim(name)), lambda name: name <> ''
        )) as feeds
    from staging.stg_node_racks
    where feed is not null and in_cluster(cluster)
),

placed as (
    select cluster, node, rack, rack_row, len(feeds) as shared_by, feeds, unnest(feeds) as feed from of_nodes
),

capacities as (
    select
        names.cluster,
        names.feed,
        feeds.capacity_w,
        coalesce(feeds.server_ratio, 1) as server_ratio
    from (select distinct cluster, feed from placed) as names
    left join staging.stg_power_feeds as feeds
        on names.feed = feeds.feed and coalesce(feeds.cluster, names.cluster) = names.cluster
    qualify row_number() over (
        partition by names.cluster, names.feed order by feeds.cluster is not null desc
    ) = 1
),

powers as (
    select cluster, node, start_ms, power_w from marts.node_metrics where power_w is not null
),

drawn as (
    select
        placed.* exclude (rack, rack_row),
        powers.start_ms,
        powers.power_w * capacities.server_ratio / placed.shared_by as power_w
    from placed
    inner join powers using (cluster, node)
    inner join capacities using (cluster, feed)
),

loads as (
    select cluster, feed, start_ms, sum(power_w) as power_w from drawn group by cluster, feed, start_ms
),

-- what a node drew from the failed feed it draws from its others, in equal parts
extra as (
    select cluster, feed, failed_feed, start_ms, sum(power_w / (shared_by - 1)) as power_w
    from (select *, unnest(list_filter(feeds, lambda name: name <> feed)) as failed_feed from drawn where shared_by > 1)
    group by cluster, feed, failed_feed, start_ms
),

failovers as (
    select
        extra.cluster,
        extra.feed,
        arg_max(extra.failed_feed, extra.power_w + loads.power_w) as failed_feed,
        max(extra.power_w + loads.power_w) as failover_w
    from extra
    inner join loads using (cluster, feed, start_ms)
    group by extra.cluster, extra.feed
),

of_feeds as (
    select
        cluster,
        feed,
        string_agg(distinct rack, ', ' order by rack) as racks,
        string_agg(distinct rack_row, ', ' order by rack_row) as rack_rows,
        count(*) as nodes,
        count(*) filter (where shared_by = 1) as single_nodes
    from placed
    group by cluster, feed
),

measured as (
    select cluster, feed, avg(power_w) as load_w, max(power_w) as peak_w from loads group by cluster, feed
),

read_nodes as (
    select cluster, feed, count(distinct node) as read_nodes from drawn group by cluster, feed
)

select
    of_feeds.*,
    coalesce(read_nodes.read_nodes, 0) as read_nodes,
    capacities.server_ratio,
    measured.load_w,
    measured.peak_w,
    failovers.failed_feed,
    failovers.failover_w,
    capacities.capacity_w,
    capacities.capacity_w - greatest(measured.peak_w, failovers.failover_w) as margin_w,
    capacities.capacity_w < greatest(measured.peak_w, failovers.failover_w) as is_exceeded
from of_feeds
inner join capacities using (cluster, feed)
left join measured using (cluster, feed)
left join read_nodes using (cluster, feed)
left join failovers using (cluster, feed)
