-- Telemetry coverage of the fleet by source and hour; 0: the source sent nothing.
-- grain: cluster, hour_at
-- evaluated: first
-- gpus_expected: GPUs in the inventory in that hour
-- coverage_ratio: time covered by readings / time in the inventory
with pieces as (
    select
        cluster, node, hour_ms, gpu_uuid, gpu_instance, job_run_key is not null as is_held, end_ms - start_ms as unit_ms
    from intermediate.int_ledger_segments
    union all
    select cluster, node, hour_ms, gpu_uuid, gpu_instance, job_run_key is not null, null from state.ledger_archive
),

units as materialized (
    select
        cluster, hour_ms, gpu_uuid, gpu_instance,
        bool_or(is_held) as was_held,
        not bool_and(is_held) as was_free,
        sum(unit_ms) filter (where gpu_instance <> 'rest') as unit_ms
    from pieces
    where
        hour_ms >= scope_from_ms() // one_hour_ms() * one_hour_ms()
        and hour_ms < scope_to_ms()
        and in_cluster(cluster)
        and in_node(node)
    group by all
),

seen as (
    select gpu_uuid, gpu_instance, hour_ms, sum(end_ms - start_ms) as seen_ms
    from intermediate.int_gpu_activity
    where
        hour_ms >= scope_from_ms() // one_hour_ms() * one_hour_ms()
        and hour_ms < scope_to_ms()
    group by all
),

-- categories are of the roll-up by node, which has far fewer rows; how many GPUs there were it does not say
sums as (
    select
        cluster,
        hour_ms,
        job_run_key is not null as is_held,
        sum(gpu_ms) as gpu_ms,
        coalesce(sum(gpu_ms) filter (
            where category in ('unknown', 'busy_unclassified') and is_held or category = 'free_unknown' and not is_held
        ), 0) as unknown_ms
    from marts.ledger_hourly_by_node
    where in_node(node)
    group by all
),

gpus as (
    select
        cluster,
        hour_ms,
        count(distinct gpu_uuid) filter (where was_held) as held_gpus,
        count(distinct gpu_uuid) filter (where was_free) as free_gpus
    from units
    group by cluster, hour_ms
)

select
    'telemetry' as source,
    units.cluster,
    from_ms(units.hour_ms) as hour_at,
    count(distinct units.gpu_uuid) as gpus_expected,
    coalesce(sum(least(coalesce(seen.seen_ms, 0), units.unit_ms)), 0) / nullif(sum(units.unit_ms), 0) as coverage_ratio
from units
left join seen using (gpu_uuid, gpu_instance, hour_ms)
where units.unit_ms is not null
group by units.cluster, units.hour_ms
union all
select
    case when sums.is_held then 'job evidence' else 'node states' end,
    gpus.cluster,
    from_ms(gpus.hour_ms),
    case when sums.is_held then gpus.held_gpus else gpus.free_gpus end,
    1 - sums.unknown_ms / nullif(sums.gpu_ms, 0)
from gpus
inner join sums using (cluster, hour_ms)
