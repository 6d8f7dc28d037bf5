"""Data of a run's time axis: telemetry of its GPUs, waits in the queue, lateness of ranks."""

from dataclasses import replace

import polars as pl

from goodput_app.access import rows
from goodput_app.dashboard import theme
from goodput_app.dashboard.data import marts, metrics, spread
from goodput_queries.scope import Scope

HEATMAP_BINS = 120
PIECES_DRAWN = 1_400
COLLECTIVES_DRAWN = 800


def timeline(scope: Scope) -> pl.DataFrame:
    """Return what the gang of the scope's run did when; of very many pieces the longest.

    The category is the one with most of a piece; hover: how much the ledger has in each.
    """
    return marts.read(
        f"""with pieces as (
            select * exclude (share_ratio, is_most),
                string_agg(
                    case
                        when share_ratio < 0.9995 then label || ' ' || percent_text(share_ratio)
                        when phase is null then label
                        else label || ' (' || phase || ')'
                    end, '<br>' order by share_ratio desc
                ) over (partition by attempt, start_at) as hover,
                is_most
            from marts.run_timeline
            where run_key = $1
        )
        select * exclude (is_most), count(*) over () as pieces
        from pieces
        where is_most
        order by end_at - start_at desc nulls first limit {PIECES_DRAWN}""",
        scope,
        scope.run,
    )


def ledger_bins(scope: Scope) -> tuple[pl.DataFrame, int]:
    """Return the run's ledger in bins, in the order of stacks, and the length of a bin in ms.

    Columns: bucket_at, category, label, colour, gpu_ms
    """
    bin_ms = metrics.bin_of_shares(scope)
    found = marts.read(
        """select bucket_at, category, label, colour, gpu_ms
        from marts.ledger_over_time
        inner join reference.gpu_second_categories using (category)
        where gpu_ms > 0""",
        replace(marts.of_any_place(scope), bucket_ms=bin_ms),
    )
    rank = pl.col("category").map_elements(theme.rank, return_dtype=pl.Int64)
    return found.sort("bucket_at", rank), bin_ms


def allocated(scope: Scope) -> pl.DataFrame:
    """Return `start_at`, `end_at` and `gpus` of the run's allocation in the window; or no row."""
    return marts.read(
        """select min(start_at) as start_at, max(end_at) as end_at,
            count(distinct gpu_uuid) as gpus
        from marts.gpu_allocations where run_key = $1 having gpus > 0""",
        marts.of_any_place(scope),
        scope.run,
    )


def telemetry(scope: Scope, read: metrics.Resolution) -> pl.DataFrame:
    """Return the metrics of the run's GPUs while it had them: `spread.over_gpus`."""
    return spread.over_gpus(
        marts.of_any_place(scope),
        read,
        metrics.METRICS,
        """select distinct gpu_uuid, to_ms(start_at) as held_from_ms, to_ms(end_at) as held_to_ms
        from marts.gpu_allocations
        where run_key = $1""",
        scope.run,
    )


def activity(scope: Scope, gpus: int) -> tuple[pl.DataFrame, str]:
    """Return how active each GPU of the run was, and the metric: the most telling one measured.

    Columns: `rank` and `gpu_index` (null where not known, or not to be seen), `node`, `gpu_uuid`,
    `at` and the metric, in at most HEATMAP_BINS bins, in the order of ranks; gpus: of the run.
    """
    names = ("sm_active_ratio", "engine_active_ratio", "gpu_busy_ratio")
    ranks = """left join (
            select run_key, attempt, gpu_uuid, rank
            from intermediate.int_rank_gpus inner join intermediate.int_attempts using (attempt_key)
        ) using (run_key, attempt, gpu_uuid)
        left join (
            select gpu_uuid, max(gpu_index) as gpu_index
            from intermediate.int_gpu_units group by gpu_uuid
        ) using (gpu_uuid)"""
    sees_all = rows.sees_all(scope)
    place = "rank, gpu_index" if sees_all else "null::bigint as rank, null::integer as gpu_index"
    by = ("rank", "node", "gpu_index", "gpu_uuid")
    found = spread.over_gpus(
        marts.of_any_place(scope),
        metrics.resolution_of(scope, gpus, HEATMAP_BINS),
        names,
        f"""select distinct {place}, node, gpu_uuid,
            to_ms(start_at) as held_from_ms, to_ms(end_at) as held_to_ms
        from marts.gpu_allocations {ranks if sees_all else ""}
        where run_key = $1""",
        scope.run,
        by,
    )
    name = next((one for one in names if found[one].count()), names[0])
    return found.select(*by, "at", name).drop_nulls(name), name


waits = marts.run_reader("run_queue", "start_at, job_id", of=marts.of_any_place)


def events(scope: Scope) -> pl.DataFrame:
    """Return Xid and other events of the run's GPUs while it had them, the latest first."""
    source = "marts.gpu_events" if rows.sees_all(scope) else "marts.allocated_events"
    return marts.read(
        f"""select distinct events.*
        from {source} as events
        inner join marts.gpu_allocations as held
            on events.gpu_uuid = held.gpu_uuid
            and events.event_at >= held.start_at
            and events.event_at < held.end_at
        where held.run_key = $1
        order by event_at desc, code, message limit 1000""",
        marts.of_any_place(scope),
        scope.run,
    )


def lateness(scope: Scope) -> pl.DataFrame:
    """Return how late each rank was over time: marts.rank_lateness in at most HEATMAP_BINS bins."""
    from_ms, to_ms = metrics.bounds(scope)
    bin_ms = next(
        (b for b in metrics.BINS_MS if to_ms - from_ms <= b * HEATMAP_BINS), metrics.BINS_MS[-1]
    )
    return marts.read(
        "select * from marts.rank_lateness where run_key = $1 order by rank, bucket_at",
        replace(marts.of_any_place(scope), bucket_ms=bin_ms),
        scope.run,
    )


def collectives(scope: Scope) -> tuple[pl.DataFrame, int]:
    """Return collectives of the run rank by rank (marts.collective_timeline), and how many are.

    Of more than COLLECTIVES_DRAWN those around the one whose ranks waited longest.
    """
    found = marts.read(
        f"""with numbered as (
            select *, row_number() over (order by start_at, rank) as place,
                count(*) over () as total
            from marts.collective_timeline where run_key = $1
        )
        select * exclude (place) from numbered
        qualify abs(place - arg_max(place, coalesce(waited_s, 0)) over ())
            <= {COLLECTIVES_DRAWN // 2}
        order by rank, start_at""",
        marts.of_any_place(scope),
        scope.run,
    )
    return found.drop("total"), int(found["total"][0]) if found.height else 0


def useful_hours(scope: Scope) -> pl.DataFrame:
    """Return `run_key` and `useful`: share of its GPU time in each hour in which it had GPUs."""
    return marts.read(
        """with hours as (
            select run_key, hour_ms,
                coalesce(sum(gpu_ms) filter (where kind = 'goodput'), 0) / sum(gpu_ms) as ratio
            from marts.ledger_scoped_by_node
            inner join reference.gpu_second_categories using (category)
            where run_key is not null
            group by all having sum(gpu_ms) > 0
        )
        select run_key, list(ratio::float order by hour_ms) as useful
        from hours group by run_key""",
        scope,
    )
