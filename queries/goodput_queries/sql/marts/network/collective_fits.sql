-- Time of collectives as a latency and a time for each byte (Hockney's model), fitted to their sizes by least squares of
-- the relative error.
-- grain: shape
-- evaluated: first
-- shape, measured_by: see collective_times; sizes: number of them
-- latency_s: time of the smallest operation; byte_s: seconds for each byte. Shapes whose times do not follow the model (one
--  of the two would not be above zero) have no row
-- limit_bytes_per_s: bus bandwidth that operations without end come near
-- half_bytes: size at which half of it is reached; smaller ones wait for latency
-- fit_error_ratio: root mean square of the relative error over the sizes
-- tested_from_ranks, scaling_error_ratio: the same error of a forecast of these times in a ring from the fit of the next smaller
--  number of ranks over several nodes, and that number; null: none was measured, so that how the times scale is not tested
with points as materialized (from marts.collective_times),

sums as (
    select
        shape,
        cluster,
        operation,
        ranks,
        nodes,
        gpu_model,
        measured_by,
        count(*) as sizes,
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

fits as (
    select
        * exclude (aa, ab, bb, a, b),
        (a * bb - b * ab) / (aa * bb - ab * ab) as latency_s,
        (aa * b - ab * a) / (aa * bb - ab * ab) as byte_s
    from sums
    where latency_s > 0 and byte_s > 0
),

with_smaller as (
    select *, max_by(fits, ranks) filter (where nodes > 1) over smaller as smaller
    from fits
    window smaller as (
        partition by cluster, operation, gpu_model, measured_by, ranks / nodes
        order by ranks range between unbounded preceding and 1 preceding
    )
)

select
    fits.* exclude (smaller),
    bus_factor(fits.operation, fits.ranks) / fits.byte_s as limit_bytes_per_s,
    (fits.latency_s / fits.byte_s)::bigint as half_bytes,
    sqrt(avg(((fits.latency_s + fits.byte_s * points.size_bytes) / points.p50_s - 1) ** 2)) as fit_error_ratio,
    fits.smaller.ranks as tested_from_ranks,
    sqrt(avg((
        ring_time_s(
            fits.operation, points.size_bytes, fits.ranks, fits.smaller.ranks, fits.smaller.latency_s, fits.smaller.byte_s
        ) / points.p50_s - 1
    ) ** 2)) as scaling_error_ratio
from with_smaller as fits
inner join points using (shape)
group by all
