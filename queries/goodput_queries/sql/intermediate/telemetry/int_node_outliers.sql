-- Nodes whose idle GPUs draw more power, or whose GPUs are hotter at like power, than those of other nodes of the model for a
-- long time, as marts.peer_outliers has them.
-- grain: none (a node with GPUs of two models may have two rows of a rule)
-- evaluated: first
-- skip_if_empty: intermediate.int_gpu_metrics
-- nodes and models by number: names take several times as long to group by
with places as materialized (
    select
        *,
        dense_rank() over (order by cluster, node, gpu_model)::integer as place,
        dense_rank() over (order by cluster, gpu_model)::integer as kind
    from (select distinct cluster, node, gpu_model, gpu_uuid from intermediate.int_gpu_units where gpu_instance = '')
),

readings as materialized (
    select
        places.place,
        places.kind,
        metrics.start_ms,
        metrics.power_w.mean::double as power_w,
        metrics.gpu_temperature_c.mean::double as gpu_temperature_c,
        -- engine activity may be stuck at 0 while kernels run
        greatest(metrics.engine_active_ratio.max, metrics.gpu_busy_ratio.max) < threshold('idle_share_ratio') as is_idle
    from intermediate.int_gpu_metrics as metrics
    inner join places using (gpu_uuid)
    where
        metrics.gpu_instance = ''
        and metrics.power_w.n > 0
        and metrics.hour_ms > scope_from_ms() - one_hour_ms()
        and metrics.start_ms >= scope_from_ms()
        and metrics.start_ms < scope_to_ms()
),

-- the rise over the inlet is in proportion to power (thermal resistance): one line for all GPUs of a model, so that a node
-- is compared whatever the others do. Slope and height are of medians, which single hot nodes do not move.
slopes as (
    select
        kind,
        -- of one class of power there is no slope, and others cannot be compared with it
        nullif(regr_slope(gpu_temperature_c, power_w), 'nan'::double) as c_per_w,
        any_value(power_class) as any_class
    from (
        select
            kind,
            floor(power_w / 100) as power_class,
            median(gpu_temperature_c) as gpu_temperature_c,
            median(power_w) as power_w
        from readings
        where gpu_temperature_c is not null
        group by kind, power_class
        having count(distinct place) >= threshold('peer_min_nodes')
    )
    group by kind
),

rises as materialized (
    select
        readings.* exclude (gpu_temperature_c),
        case when slopes.kind is not null then readings.gpu_temperature_c end as gpu_temperature_c,
        greatest(coalesce(slopes.c_per_w, 0), 0) * readings.power_w as rise_c
    from readings
    left join slopes
        on slopes.kind = readings.kind
        and (slopes.c_per_w is not null or slopes.any_class = floor(readings.power_w / 100))
),

inlets as (
    select kind, start_ms, median(gpu_temperature_c - rise_c) as inlet_c
    from rises
    where gpu_temperature_c is not null
    group by kind, start_ms
    having count(distinct place) >= threshold('peer_min_nodes')
),

node_bins as materialized (
    select
        rises.place,
        rises.kind,
        rises.start_ms,
        count(*) as gpus,
        avg(rises.power_w) filter (where rises.is_idle) as idle_power_w,
        avg(rises.gpu_temperature_c) filter (where inlets.inlet_c is not null) as gpu_temperature_c,
        avg(inlets.inlet_c + rises.rise_c) filter (where rises.gpu_temperature_c is not null) as expected_temperature_c
    from rises
    left join inlets using (kind, start_ms)
    group by rises.place, rises.kind, rises.start_ms
),

node_medians as (
    select
        kind,
        start_ms,
        count(idle_power_w) as idle_nodes,
        count(expected_temperature_c) as read_nodes,
        median(idle_power_w) as idle_power_w,
        1.4826 * mad(idle_power_w) as idle_power_deviation_w,
        1.4826 * mad(gpu_temperature_c - expected_temperature_c) as temperature_deviation_c
    from node_bins
    group by kind, start_ms
),

node_scored as (
    select
        nodes.place, nodes.start_ms, nodes.gpus,
        unnest([
            {
                'rule': 'node_idle_power', 'value': nodes.idle_power_w, 'peer_value': medians.idle_power_w,
                'peers': medians.idle_nodes, 'least': threshold('peer_idle_power_w'),
                'deviation': medians.idle_power_deviation_w
            },
            {
                'rule': 'node_temperature', 'value': nodes.gpu_temperature_c, 'peer_value': nodes.expected_temperature_c,
                'peers': medians.read_nodes, 'least': threshold('node_temperature_c'),
                'deviation': medians.temperature_deviation_c
            }
        ], max_depth := 2)
    from node_bins as nodes
    inner join node_medians as medians using (kind, start_ms)
),

node_compared as materialized (
    select *, (value - peer_value) / greatest(deviation, least / threshold('peer_deviations')) as score
    from node_scored
    where peers >= threshold('peer_min_nodes') and value is not null and peer_value is not null
),

node_numbered as (
    select *, start_ms - ten_minutes_ms() * row_number() over (partition by rule, place order by start_ms) as stretch
    from node_compared
    where score >= threshold('peer_deviations')
),

node_lasting as (
    select *
    from node_numbered
    qualify count(*) over (partition by rule, place, stretch) >= threshold('peer_min_bins')
),

node_read as (
    select rule, place, count(*) as of_bins from node_compared semi join node_lasting using (rule, place) group by rule, place
)

select
    lasting.rule, any_value(places.cluster) as cluster, any_value(places.node) as node, null as gpu_uuid,
    null as job_run_key, min(lasting.start_ms) as first_ms, max(lasting.start_ms) + ten_minutes_ms() as last_ms, count(*) as bins,
    any_value(node_read.of_bins) as of_bins, avg(lasting.value) as value, avg(lasting.peer_value) as peer_value,
    max(lasting.peers) - 1 as peers, median(lasting.score) as score, sum(lasting.gpus) as gpu_bins
from node_lasting as lasting
inner join node_read using (rule, place)
inner join (select distinct place, cluster, node from places) as places using (place)
group by lasting.rule, lasting.place
