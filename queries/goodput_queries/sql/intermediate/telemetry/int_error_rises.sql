-- Rise of the error counters of each GPU by hour of the scope's window, by kind of error: hours with a rise, and those in
-- which a flag is set. The time between the last sample of an hour and the first of a later one counts in the later hour.
-- grain: cluster, node, gpu_uuid, kind, hour_ms
-- evaluated: first
-- skip_if_empty: intermediate.int_error_counters
-- rise: two sources, or a counter since driver load beside one of the GPU's life, count the same errors:
--  the greatest of them; parts of a kind add up
-- highest: value of a flag or code
with known as not materialized (
    select *
    from intermediate.int_error_counters
    where
        hour_ms < scope_to_ms()
        and in_gpu(gpu_uuid)
),

-- most counters never change: what follows looks at the others
changing as (
    -- grouped by a number: two counters of one number are looked at together, which changes nothing
    select hash(source, gpu_uuid, gpu_instance, metric) as counter
    from known
    group by counter
    having
        sum(gain) > 0
        or min(first_value) < max(last_value)
        or min(last_value) < max(first_value)
        or max(highest) filter (where metric = 'row_remap_failed') > 0
),

changed as materialized (
    select known.*
    from known
    inner join changing on hash(known.source, known.gpu_uuid, known.gpu_instance, known.metric) = changing.counter
),

counters as (
    select changed.*, kinds.kind, kinds.part
    from changed
    inner join reference.error_counters as kinds using (metric)
),

of_window as (
    select * from counters where hour_ms > scope_from_ms() - one_hour_ms()
),

before_window as (
    select
        source,
        gpu_uuid,
        gpu_instance,
        metric,
        arg_max(last_value, hour_ms) as last_value
    from counters
    where hour_ms <= scope_from_ms() - one_hour_ms()
    group by source, gpu_uuid, gpu_instance, metric
),

rises as (
    select
        of_window.* exclude (metric, first_value, last_value, gain),
        of_window.gain + coalesce(
            counter_increase(
                of_window.first_value,
                coalesce(
                    lag(of_window.last_value) over (
                        partition by of_window.source, of_window.gpu_uuid, of_window.gpu_instance, of_window.metric
                        order by of_window.hour_ms
                    ),
                    before_window.last_value
                )
            ),
            0
        ) as rise
    from of_window
    left join before_window using (source, gpu_uuid, gpu_instance, metric)
),

of_parts as (
    select source, gpu_uuid, gpu_instance, kind, part, hour_ms, max(rise) as rise, max(highest) as highest
    from rises
    group by source, gpu_uuid, gpu_instance, kind, part, hour_ms
),

of_series as (
    select source, gpu_uuid, gpu_instance, kind, hour_ms, sum(rise) as rise, max(highest) as highest
    from of_parts
    group by source, gpu_uuid, gpu_instance, kind, hour_ms
),

placed as (
    select stays.cluster, stays.node, stays.gpu_model, of_series.*
    from of_series
    inner join intermediate.int_gpu_inventory as stays
        on of_series.gpu_uuid = stays.gpu_uuid
        and of_series.hour_ms + one_hour_ms() > coalesce(stays.start_ms, 0)
        and of_series.hour_ms < coalesce(stays.end_ms, forever_ms())
    -- a GPU that was moved in this hour counts where it came to
    qualify row_number() over (
        partition by of_series.source, of_series.gpu_uuid, of_series.gpu_instance, of_series.kind, of_series.hour_ms
        order by stays.start_ms desc nulls last
    ) = 1
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
from placed
where rise > 0 or (kind = 'remap_failed' and highest > 0)
group by cluster, node, gpu_uuid, kind, hour_ms
