-- Telemetry coverage of the fleet by source and hour; 0: the source sent nothing.
-- grain: cluster, hour_at
-- evaluated: first
-- gpus_expected: GPUs in the inventory in that hour
-- coverage_ratio: time covered by readings / time in the inventory
with capacity as (
    select cluster, hour_ms, gpu_uuid, gpu_instance, sum(end_ms - start_ms) as unit_ms
    from intermediate.int_ledger_segments
    where
        hour_ms >= coalesce(getvariable('scope_from_ms')::bigint, 0) // 3600000 * 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        and (getvariable('scope_cluster') is null or cluster = getvariable('scope_cluster'))
        and (getvariable('scope_node') is null or node = getvariable('scope_node'))
        and gpu_instance <> 'rest'
    group by all
),

seen as (
    select gpu_uuid, gpu_instance, hour_ms, sum(end_ms - start_ms) as seen_ms
    from intermediate.int_gpu_activity
    where
        hour_ms >= coalesce(getvariable('scope_from_ms')::bigint, 0) // 3600000 * 3600000
        and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
    group by all
)

select
    'telemetry' as source,
    capacity.cluster,
    from_ms(capacity.hour_ms) as hour_at,
    count(distinct capacity.gpu_uuid) as gpus_expected,
    coalesce(sum(least(coalesce(seen.seen_ms, 0), capacity.unit_ms)), 0) / nullif(sum(capacity.unit_ms), 0) as coverage_ratio
from capacity
left join seen using (gpu_uuid, gpu_instance, hour_ms)
group by capacity.cluster, capacity.hour_ms
union all
select
    'job evidence',
    cluster,
    from_ms(hour_ms),
    count(distinct gpu_uuid),
    1 - coalesce(sum(gpu_ms) filter (where category in ('unknown', 'busy_unclassified')), 0)
        / nullif(sum(gpu_ms), 0)
from marts.ledger_pieces
where
    job_run_key is not null
    and hour_ms >= coalesce(getvariable('scope_from_ms')::bigint, 0) // 3600000 * 3600000
    and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
    and (getvariable('scope_cluster') is null or cluster = getvariable('scope_cluster'))
    and (getvariable('scope_node') is null or node = getvariable('scope_node'))
group by cluster, hour_ms
union all
select
    'node states',
    cluster,
    from_ms(hour_ms),
    count(distinct gpu_uuid),
    1 - coalesce(sum(gpu_ms) filter (where category = 'free_unknown'), 0) / nullif(sum(gpu_ms), 0)
from marts.ledger_pieces
where
    job_run_key is null
    and hour_ms >= coalesce(getvariable('scope_from_ms')::bigint, 0) // 3600000 * 3600000
    and hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
    and (getvariable('scope_cluster') is null or cluster = getvariable('scope_cluster'))
    and (getvariable('scope_node') is null or node = getvariable('scope_node'))
group by cluster, hour_ms
