-- TCP segments that the scope's nodes sent in the hours that the window touches, and those that they had to send again.
-- grain: cluster, node
-- evaluated: first
-- retransmit_ratio: of the segments sent
with of_sources as (
    select *, sum(samples) over (partition by cluster, node, source) as in_all
    from intermediate.int_host_hours
    where
        hour_ms > scope_from_ms() - one_hour_ms()
        and hour_ms < scope_to_ms()
        and tcp_sent_segments.n > 0
        and in_place(cluster, node, null, null)
),

hours as (
    select *
    from of_sources
    semi join staging.stg_node_clusters as known on of_sources.node = known.node
    qualify dense_rank() over (partition by cluster, node order by in_all desc, source) = 1
),

gains as (
    select
        cluster,
        node,
        gain_since(tcp_sent_segments, lag(tcp_sent_segments.last) over hosts) as sent,
        gain_since(tcp_retransmitted_segments, lag(tcp_retransmitted_segments.last) over hosts) as again
    from hours
    window hosts as (partition by cluster, node order by hour_ms)
)

select
    cluster,
    node,
    sum(sent)::bigint as sent_segments,
    sum(again)::bigint as retransmitted_segments,
    sum(again) / nullif(sum(sent), 0) as retransmit_ratio
from gains
group by cluster, node
