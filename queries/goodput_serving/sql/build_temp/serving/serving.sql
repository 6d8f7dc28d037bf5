-- What serving telemetry says of each unit of this pass. Where engines share a unit, one with requests decides, and
-- engines of which some kept their objective and some did not leave it open.
-- grain: unit, start_ms
-- number: macros/serving.sql
-- skip_if_empty: intermediate.int_serving_gpus
with pieces as (
    select
        gpus.gpu_uuid,
        gpus.gpu_instance,
        serving_number(timeline.category) as number,
        greatest(timeline.start_ms, gpus.start_ms) as start_ms,
        least(timeline.end_ms, gpus.end_ms) as end_ms
    from intermediate.int_serving_timeline as timeline
    inner join intermediate.int_serving_gpus as gpus
        on timeline.cluster = gpus.cluster
        and timeline.endpoint = gpus.endpoint
        and timeline.engine = gpus.engine
        and timeline.start_ms < gpus.end_ms
        and timeline.end_ms > gpus.start_ms
    where timeline.hour_ms >= build_from_ms() and timeline.hour_ms < build_to_ms()
    union all
    select gpu_uuid, gpu_instance, 1, start_ms, ready_ms
    from intermediate.int_serving_gpus
    where ready_ms > start_ms and start_ms < build_to_ms() and ready_ms > build_from_ms()
),

of_units as (
    select
        units.unit,
        pieces.number,
        greatest(pieces.start_ms, units.start_ms) as start_ms,
        least(pieces.end_ms, units.end_ms) as end_ms
    from pieces
    inner join temp.units as units using (gpu_uuid, gpu_instance)
    where pieces.start_ms < units.end_ms and pieces.end_ms > units.start_ms
),

-- eight bits for the number of engines of each number
moments as (
    select unit, at_ms, sum(change)::bigint as change
    from (
        select
            unit,
            unnest([start_ms, end_ms]) as at_ms,
            unnest([1, -1]) * (1::bigint << (8 * (number - 1))::integer) as change
        from of_units
        where end_ms > start_ms
    )
    group by all
),

states as (
    select
        unit,
        at_ms as start_ms,
        lead(at_ms) over (partition by unit order by at_ms) as end_ms,
        sum(change) over (partition by unit order by at_ms rows unbounded preceding)::bigint as engines
    from moments
),

decided as (
    select
        unit,
        start_ms,
        end_ms,
        engines & 255 > 0 as is_loading,
        (engines >> 16) & 255 > 0 as is_within,
        (engines >> 24) & 255 > 0 as is_open,
        (engines >> 32) & 255 > 0 as is_missed,
        (engines >> 40) & 255 > 0 as is_unsplit
    from states
    where engines > 0 and end_ms is not null
)

select
    unit,
    case
        when is_open or is_missed and (is_within or is_unsplit) then 4
        when is_missed then 5
        when is_unsplit then 6
        when is_within then 3
        when is_loading then 1
        else 2
    end as number,
    start_ms,
    end_ms
from decided
