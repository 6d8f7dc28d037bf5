-- Time of collectives by their fit at the measured sizes, and among two and four times as many ranks.
-- grain: shape, forecast_ranks, size_bytes
-- evaluated: first
-- shape: see collective_times; ranks: that were measured
-- forecast_ranks: ranks: the fit itself. More: over as many GPUs a node, in a ring; only where the fit is of several nodes,
--  since a link between nodes is in no time inside one
-- size_bytes: a size that was measured; forecast_s: time at it; forecast_bytes_per_s: as bus bandwidth, bytes/s
-- error_ratio: of the fit; of more ranks what the forecast from the next smaller number of ranks missed (scaling_error_ratio);
--  null: not tested, or not over so large a step
with lines as (
    select
        *,
        unnest(case when nodes > 1 and ring_steps(operation, ranks) > 0 then [1, 2, 4] else [1] end) * ranks as forecast_ranks
    from marts.collective_fits
)

select
    lines.shape,
    lines.operation,
    lines.ranks,
    lines.forecast_ranks,
    points.size_bytes,
    case
        when lines.forecast_ranks = lines.ranks then lines.latency_s + lines.byte_s * points.size_bytes
        else ring_time_s(
            lines.operation, points.size_bytes, lines.forecast_ranks, lines.ranks, lines.latency_s, lines.byte_s
        )
    end as forecast_s,
    points.size_bytes / forecast_s * bus_factor(lines.operation, lines.forecast_ranks) as forecast_bytes_per_s,
    case
        when lines.forecast_ranks = lines.ranks then lines.fit_error_ratio
        when lines.forecast_ranks * lines.tested_from_ranks <= lines.ranks ** 2 then lines.scaling_error_ratio
    end as error_ratio
from lines
inner join marts.collective_times as points using (shape)
