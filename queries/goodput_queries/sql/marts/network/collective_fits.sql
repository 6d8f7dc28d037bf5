-- Time of collectives as a latency and a time for each byte (Hockney's model), fitted to their sizes by least squares of
-- the relative error.
-- grain: cluster, operation, ranks, nodes, gpu_model, measured_by
-- measured_by: see collective_times; sizes: number of them; smallest_bytes, largest_bytes: of them
-- latency_s: time of the smallest operation; byte_s: seconds for each byte; both null: the times do not follow the model
-- limit_bytes_per_s: bus bandwidth that operations without end come near
-- half_bytes: size at which half of it is reached; smaller ones wait for latency
-- fit_error_ratio: root mean square of the relative error over the sizes
-- tested_from_ranks, scaling_error_ratio: the same error of a prediction of these times in a ring from the fit of the next smaller
--  number of ranks over several nodes, and that number; null: none was measured, so that how the times scale is not tested
-- skip_if_empty: raw.collectives, raw.nccl_benchmarks
with points as materialized (from marts.collective_times),

sums as (
    select
        cluster,
        operation,
        ranks,
        nodes,
        gpu_model,
        measured_by,
        count(*) as sizes,
        min(size_bytes) as smallest_bytes,
        max(size_bytes) as largest_bytes,
        -- the relative error is latency / time + byte_s * size / time - 1
        sum(p50_s ** -2) as aa,
        sum(size_bytes / p50_s ** 2) as ab,
        sum((size_bytes / p50_s) ** 2) as bb,
        sum(1 / p50_s) as a,
        sum(size_bytes / p50_s) as b
    from points
    group by all
    having count(*) >= threshold('fit_min_sizes') and max(size_bytes) >= threshold('fit_min_range') * min(size_bytes)
),

solved as (
    select
        * exclude (aa, ab, bb, a, b),
        (a * bb - b * ab) / (aa * bb - ab * ab) as solved_latency_s,
        (aa * b - ab * a) / (aa * bb - ab * ab) as solved_byte_s,
        -- a bandwidth without end, or a time before the start, is none
        solved_latency_s > 0 and solved_byte_s > 0 as is_model
    from sums
),

fits as (
    select
        * exclude (solved_latency_s, solved_byte_s, is_model),
        case when is_model then solved_latency_s end as latency_s,
        case when is_model then solved_byte_s end as byte_s,
        case when nodes > 1 then max(ranks) filter (where nodes > 1 and is_model) over smaller end as tested_from_ranks
    from solved
    window smaller as (
        partition by cluster, operation, gpu_model, measured_by, ranks / nodes order by ranks
        range between unbounded preceding and 1 preceding
    )
),

errors as (
    select
        fits.cluster,
        fits.operation,
        fits.ranks,
        fits.nodes,
        fits.gpu_model,
        fits.measured_by,
        sqrt(avg(((fits.latency_s + fits.byte_s * points.size_bytes) / points.p50_s - 1) ** 2)) as fit_error_ratio,
        sqrt(avg((
            ring_time_s(
                fits.operation, points.size_bytes, fits.ranks, smaller.ranks, smaller.latency_s, smaller.byte_s
            ) / points.p50_s - 1
        ) ** 2)) as scaling_error_ratio
    from fits
    inner join points
        on fits.cluster = points.cluster
        and fits.operation = points.operation
        and fits.ranks = points.ranks
        and fits.nodes = points.nodes
        and fits.gpu_model is not distinct from points.gpu_model
        and fits.measured_by = points.measured_by
    left join fits as smaller
        on fits.cluster = smaller.cluster
        and fits.operation = smaller.operation
        and fits.tested_from_ranks = smaller.ranks
        and fits.ranks / fits.nodes = smaller.ranks / smaller.nodes
        and fits.gpu_model is not distinct from smaller.gpu_model
        and fits.measured_by = smaller.measured_by
    group by all
)

select
    fits.* exclude (tested_from_ranks),
    bus_factor(fits.operation, fits.ranks) / fits.byte_s as limit_bytes_per_s,
    (fits.latency_s / fits.byte_s)::bigint as half_bytes,
    case when fits.latency_s is not null then errors.fit_error_ratio end as fit_error_ratio,
    fits.tested_from_ranks,
    errors.scaling_error_ratio
from fits
inner join errors
    on fits.cluster = errors.cluster
    and fits.operation = errors.operation
    and fits.ranks = errors.ranks
    and fits.nodes = errors.nodes
    and fits.gpu_model is not distinct from errors.gpu_model
    and fits.measured_by = errors.measured_by
