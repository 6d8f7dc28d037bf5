-- Metrics of the scope's GPUs by ten minutes, with the node the GPU was in. Where two sources read a GPU, those of the
-- source with more samples. Metrics have mean, min, max and n (number of samples that have it), states last as well.
-- grain: gpu_uuid, gpu_instance, start_ms
-- start_ms: start of the ten minutes, epoch ms
-- most GPUs have one source and one place, and choosing among rows costs as much again as reading them
with rivals as (
    select gpu_uuid from state.reading_series group by gpu_uuid having count(distinct source) > 1
    union
    select gpu_uuid from intermediate.int_gpu_inventory group by gpu_uuid having count(*) > 1
),

placed as not materialized (
    select
        stays.cluster,
        stays.node,
        stays.gpu_index,
        stays.gpu_model,
        metrics.*
    from intermediate.int_gpu_metrics as metrics
    left join intermediate.int_gpu_inventory as stays
        on metrics.gpu_uuid = stays.gpu_uuid
        and metrics.start_ms + ten_minutes_ms() > coalesce(stays.start_ms, 0)
        and metrics.start_ms < coalesce(stays.end_ms, forever_ms())
    where
        metrics.hour_ms > scope_from_ms() - one_hour_ms()
        and metrics.start_ms > scope_from_ms() - ten_minutes_ms()
        and metrics.start_ms < scope_to_ms()
        and in_gpu(metrics.gpu_uuid)
        and in_place(stays.cluster, stays.node, metrics.gpu_uuid, stays.gpu_model)
)

select * from placed where gpu_uuid not in (from rivals)
union all
(
    select *
    from placed
    where gpu_uuid in (from rivals)
    qualify row_number() over (
        partition by gpu_uuid, gpu_instance, start_ms order by samples desc, source, start_ms
    ) = 1
)
