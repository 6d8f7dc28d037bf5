-- Rise of the error counters of each GPU by hour of the scope's window, by kind of error. The time between the last
-- sample of an hour and the first of a later one counts in the later hour.
-- grain: cluster, node, gpu_uuid, kind, hour_ms
-- evaluated: first
-- rise: never negative; two sources, or a counter since driver load beside one of the GPU's life, count the same errors:
--  the greatest of them; parts of a kind add up
-- highest: value of a flag or code
-- series and parts of kinds by number: their names take several times as long
with counted as materialized (
    select
        source, gpu_uuid, gpu_instance, metric,
        (row_number() over ())::integer as series,
        (dense_rank() over (order by source, gpu_uuid, gpu_instance))::integer as unit
    from (select distinct source, gpu_uuid, gpu_instance, metric from intermediate.int_error_counters)
),

counters as (
    select
        series.series,
        series.unit,
        counters.hour_ms,
        counters.first_value,
        counters.last_value,
        counters.highest,
        counters.gain,
        kinds.kind,
        kinds.part
    from intermediate.int_error_counters as counters
    inner join reference.error_counters as kinds using (metric)
    inner join counted as series using (source, gpu_uuid, gpu_instance, metric)
    where
        counters.hour_ms < coalesce(getvariable('scope_to_ms')::bigint, 9223372036854775807)
        and (getvariable('scope_gpu_uuid') is null or counters.gpu_uuid = getvariable('scope_gpu_uuid'))
),

of_window as (
    select * from counters where hour_ms > coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
),

before_window as (
    select series, arg_max(last_value, hour_ms) as last_value
    from counters
    where hour_ms <= coalesce(getvariable('scope_from_ms')::bigint, 0) - 3600000
    group by series
),

rises as (
    select
        of_window.unit,
        of_window.kind,
        of_window.part,
        of_window.hour_ms,
        of_window.highest,
        of_window.gain + coalesce(
            counter_increase(
                of_window.first_value,
                coalesce(
                    lag(of_window.last_value) over (
                        partition by of_window.series order by of_window.hour_ms
                    ),
                    before_window.last_value
                )
            ),
            0
        ) as rise
    from of_window
    left join before_window using (series)
),

of_parts as (
    select unit, kind, part, hour_ms, max(rise) as rise, max(highest) as highest
    from rises
    group by unit, kind, part, hour_ms
),

of_series as (
    select unit, kind, hour_ms, sum(rise) as rise, max(highest) as highest
    from of_parts
    group by unit, kind, hour_ms
),

-- most GPUs were always in one place, and choosing among places takes longer than joining them
moved as (
    select gpu_uuid from intermediate.int_gpu_inventory group by gpu_uuid having count(*) > 1
),

units as (
    select unit, any_value(gpu_uuid) as gpu_uuid from counted group by unit
),

placed as (
    select stays.cluster, stays.node, stays.gpu_model, stays.start_ms as here_ms, units.gpu_uuid, of_series.*
    from of_series
    inner join units using (unit)
    inner join intermediate.int_gpu_inventory as stays
        on units.gpu_uuid = stays.gpu_uuid
        and of_series.hour_ms + 3600000 > coalesce(stays.start_ms, 0)
        and of_series.hour_ms < coalesce(stays.end_ms, 9223372036854775807)
),

placed_once as (
    select * from placed where gpu_uuid not in (from moved)
    union all
    (
        select *
        from placed
        where gpu_uuid in (from moved)
        -- a GPU that was moved in this hour counts where it came to
        qualify row_number() over (
            partition by unit, kind, hour_ms order by here_ms desc nulls last
        ) = 1
    )
)

select
    cluster,
    node,
    gpu_uuid,
    any_value(gpu_model) as gpu_model,
    kind,
    hour_ms,
    max(rise) as rise,
    max(highest) as highest
from placed_once
group by cluster, node, gpu_uuid, kind, hour_ms
