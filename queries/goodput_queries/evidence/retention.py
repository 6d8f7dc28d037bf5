"""Retention: drops readings, collectives and segments by day; the hourly ledger stays.

Hours without their readings are frozen. Their hourly ledger and energy move to archives, which
every build reads, and late-arriving evidence does not change them, unless all of their readings
are ingested again: then the build recomputes them (`reopen_hours`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl

from goodput_queries.catalog import models
from goodput_queries.errors import StoreError, TooMuchDroppedError, UnbuiltError
from goodput_queries.evidence.plausible import utc_now
from goodput_queries.storage.database_file import DatabaseFile

DAY_MS, HOUR_MS = 86_400_000, 3_600_000
SHARE_MAX = 0.1  # of the rows of a table: more at once only by `is_confirmed`
SCHEMA = {"table_name": pl.String, "rows": pl.Int64, "kept_from_ms": pl.Int64}
OF_READINGS = (
    *("raw.gpu_samples", "raw.gpu_samples_other", "raw.gpu_processes", "raw.link_samples"),
    *("raw.serving_samples", "raw.serving_histograms"),
)
# readings of power meters stay: statements charge electricity by them
OF_HOSTS = "power_w is null and (cpu_total_s is not null or memory_total_bytes is not null)"
SEGMENTS = "intermediate.int_ledger_segments"
ARCHIVES = {
    "state.ledger_archive": "marts.ledger_hourly",
    "state.energy_archive": "marts.statement_energy_hourly",
}
STAGES_OF_READINGS = ("intermediate.int_gpu_activity", "intermediate.int_slowed_readings")


@dataclass(frozen=True)
class Retention:
    """Retention in days, back from `confirmed_end_ms` or the clock; None keeps all.

    samples_days: readings of GPUs, hosts, links and serving engines, and requests of engines.
    collectives_days: single NCCL operations. segments_days: the ledger at millisecond resolution,
    at least as long as the readings it is made of.
    """

    samples_days: int | None = None
    collectives_days: int | None = None
    segments_days: int | None = None

    def __post_init__(self) -> None:
        """Refuse ages under a day, and ages that drop segments before their readings."""
        for name in ("samples_days", "collectives_days", "segments_days"):
            days = getattr(self, name)
            if days is not None and days < 1:
                raise StoreError(f"retention: {name} is {days}; keep one day at least.")
        if self.segments_days is not None and (
            self.samples_days is None or self.segments_days < self.samples_days
        ):
            raise StoreError(
                "retention: segments can be made again from readings, so keep segments_days at "
                "least as long as samples_days, and set both."
            )


def drop_old(
    store: DatabaseFile,
    retention: Retention,
    *,
    is_confirmed: bool = False,
    now: datetime | None = None,
) -> pl.DataFrame:
    """Drop what is older than configured; return table_name, rows and kept_from_ms, one row each.

    is_confirmed: drop more than a tenth of a table too. Once a table has been pruned, the day that
    has come of age since needs no such word.

    Raises UnbuiltError where loads are waiting for a build: their hours would be frozen unbuilt.
    Raises TooMuchDroppedError, and drops nothing, where the word is missing.
    """
    with store.writing() as cursor:
        if _scalar(cursor, "select max(sequence) from state.ingested") != _scalar(
            cursor, "select max(sequence) from state.built"
        ):
            raise UnbuiltError(
                "no build has processed the latest evidence: run `goodput build` first."
            )
        as_of = _scalar(cursor, "select max(as_of_ms) from intermediate.int_clusters")
        latest = min(as_of or 0, _ms(now or utc_now()))
        if not _cuts(cursor, retention, latest):  # what is confirmed reaches no farther
            return pl.DataFrame(schema=SCHEMA)
        cuts = _cuts(cursor, retention, min(latest, confirmed_end_ms(cursor) or 0))
        if not is_confirmed:
            for table, time, cut in cuts:
                _refuse_much(cursor, table, time, cut)
        dropped: list[tuple[str, int, int]] = []
        for table, _, cut in cuts:
            dropped += _DROPS[table](cursor, cut)
            _note(cursor, table, cut)
    return pl.DataFrame(dropped, schema=SCHEMA, orient="row")


def load_archive(store: DatabaseFile, ledger: Path, energy: Path) -> None:
    """Load archived hours from Parquet files with the columns of ARCHIVES, before the first build.

    Builds then compute later hours alone, as if readings up to the end of these had been dropped.
    """
    with store.writing() as cursor:
        for archive, path in zip(ARCHIVES, (ledger, energy), strict=True):
            cursor.execute(f"insert into {archive} by name from read_parquet($1)", [str(path)])
        end_ms = _scalar(cursor, f"select max(hour_ms) + {HOUR_MS} from state.ledger_archive")
        for table in ("gpu_samples", "ledger_segments"):
            _note(cursor, table, end_ms or 0)


def confirmed_end_ms(cursor: duckdb.DuckDBPyConnection) -> int | None:
    """Return the end of confirmed evidence, of the cluster where it is latest.

    Confirmed is what two sources reach, or the end of an hour or more of readings without a hole of
    an hour: one row of a wrong time is neither.
    """
    return _scalar(
        cursor,
        f"""with of_gpus as (
            select gpu_uuid, min(cluster) as cluster
            from intermediate.int_gpu_inventory group by gpu_uuid
        ),
        ends as (
            select coalesce(cluster, '') as cluster, source, max(last_ms) as end_ms
            from state.reading_series left join of_gpus using (gpu_uuid)
            group by all
            union all
            select
                cluster, source,
                to_ms(greatest(max(submit_at), max(start_at), max(end_at), max(observed_at)))
            from raw.job_runs
            group by all
            union all
            select cluster, source, to_ms(greatest(max(start_at), max(end_at)))
            from raw.node_states
            group by all
            union all
            select cluster, 'job events', max(last_ms) from state.event_hosts group by all
        ),
        -- one source in several tables is one clock
        ranked as (
            select cluster, max(end_ms) as end_ms,
                row_number() over (partition by cluster order by max(end_ms) desc) as place
            from ends
            where cluster is not null
            group by cluster, source
        ),
        per_hour as (
            select coalesce(of_gpus.cluster, '') as cluster, hours.hour,
                min(first_at) as first_at, max(last_at) as last_at
            from (
                select gpu_uuid, to_ms(ts) // {HOUR_MS} as hour,
                    min(ts) as first_at, max(ts) as last_at
                from raw.gpu_samples group by all
            ) as hours
            left join of_gpus using (gpu_uuid)
            group by all
        ),
        stretches as (
            select cluster, first_at, last_at,
                count(*) filter (is_first) over w as stretch
            from (
                select *, coalesce(first_at - lag(last_at) over w > interval 1 hour, true)
                    as is_first
                from per_hour window w as (partition by cluster order by hour)
            )
            window w as (partition by cluster order by first_at)
        )
        select max(end_ms)
        from (
            select end_ms from ranked where place = 2
            union all
            select to_ms(max(last_at)) from stretches
            group by cluster, stretch
            having max(last_at) - min(first_at) >= interval 1 hour
        )""",
    )


def reopen_hours(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Unfreeze the latest hours whose readings are complete again; return whether there are any.

    The caller then runs a full build.
    """
    kept_ms = kept_from_ms(cursor, "gpu_samples")
    found = _scalar(
        cursor,
        f"""with missing as (
            select max(dropped.hour_ms) as hour_ms
            from state.dropped_readings as dropped
            left join (
                select source, to_ms(ts) // {HOUR_MS} * {HOUR_MS} as hour_ms, count(*) as rows
                from raw.gpu_samples where ts < from_ms({kept_ms}) group by all
            ) as back using (source, hour_ms)
            where coalesce(back.rows, 0) < dropped.rows
        )
        select min(dropped.hour_ms)
        from state.dropped_readings as dropped
        where dropped.hour_ms > coalesce((from missing), -1) and dropped.hour_ms < {kept_ms}""",
    )
    if found is None:
        return False
    keep_from(cursor, found)
    return True


def keep_from(cursor: duckdb.DuckDBPyConnection, hour_ms: int) -> None:
    """Let builds compute hours from this one on from readings, not from the archives."""
    cursor.execute(
        """update state.kept_from set kept_from_ms = $1
        where table_name in ('gpu_samples', 'ledger_segments') and kept_from_ms > $1""",
        [hour_ms],
    )
    for table in (*ARCHIVES, "state.dropped_readings"):
        _delete(cursor, table, "hour_ms >= $1", hour_ms)


def kept_from_ms(cursor: duckdb.DuckDBPyConnection, table: str) -> int:
    """Return the start of the retained time of a table, 0 where no rows were dropped."""
    found = cursor.execute(
        "select kept_from_ms from state.kept_from where table_name = $1", [table]
    ).fetchall()
    return int(found[0][0]) if found else 0


def _cuts(
    cursor: duckdb.DuckDBPyConnection, retention: Retention, newest_ms: int
) -> list[tuple[str, str, int]]:
    """Return the tables with rows beyond retention, their time column, and the cut."""
    return [
        (table, time, cut)
        for table, time, days in (
            ("gpu_samples", "ts", retention.samples_days),
            ("ledger_segments", "hour_ms", retention.segments_days),
            ("collectives", "dumped_at", retention.collectives_days),
        )
        if (cut := _cut(cursor, table, newest_ms, days)) is not None
    ]


def _cut(
    cursor: duckdb.DuckDBPyConnection, table: str, newest_ms: int, days: int | None
) -> int | None:
    """Return the start of the first day that is kept, None where nothing is to be dropped."""
    if days is None:
        return None
    cut = (newest_ms // DAY_MS - days + 1) * DAY_MS
    return cut if cut > kept_from_ms(cursor, table) else None


def _refuse_much(cursor: duckdb.DuckDBPyConnection, table: str, time: str, cut: int) -> None:
    """Raise TooMuchDroppedError for over a tenth of a table, unless it is the next day alone."""
    kept = kept_from_ms(cursor, table)
    if kept and cut - kept <= DAY_MS:
        return
    bound = str(cut) if time == "hour_ms" else f"from_ms({cut})"
    name = SEGMENTS if table == "ledger_segments" else f"raw.{table}"
    old, rows = cursor.execute(
        f"select count(*) filter ({time} < {bound}), count(*) from {name}"
    ).fetchall()[0]
    if old > SHARE_MAX * rows:
        raise TooMuchDroppedError(
            f"{old:,} of {rows:,} rows of {name} ({old / rows:.0%}) are older than "
            "[retention] keeps, more than a tenth: nothing was dropped. If that is right, run "
            "`goodput prune --yes`."
        )


def _drop_readings(cursor: duckdb.DuckDBPyConnection, cut: int) -> list[tuple[str, int, int]]:
    for archive, stage in ARCHIVES.items():
        cursor.execute(
            f"insert into {archive} select * from {stage} where hour_ms >= $1 and hour_ms < $2",
            [kept_from_ms(cursor, "gpu_samples"), cut],
        )
    cursor.execute(
        f"""insert into state.dropped_readings
        select source, to_ms(ts) // {HOUR_MS} * {HOUR_MS}, count(*)
        from raw.gpu_samples
        where ts >= from_ms($1) and ts < from_ms($2)
        group by all""",
        [kept_from_ms(cursor, "gpu_samples"), cut],
    )
    moments = dict.fromkeys(OF_READINGS, "ts") | {"raw.serving_requests": "arrival_at"}
    dropped = [
        (table, _delete(cursor, table, f"{moment} < from_ms($1)", cut), cut)
        for table, moment in moments.items()
        if table.removeprefix("raw.") in models.base_tables()
    ]
    hosts = _delete(cursor, "raw.node_samples", f"ts < from_ms($1) and {OF_HOSTS}", cut)
    for table in (*STAGES_OF_READINGS, "marts.unheld_hourly"):
        _delete(cursor, table, "hour_ms < $1", cut)
    return [*dropped, ("raw.node_samples", hosts, cut)]


def _drop_segments(cursor: duckdb.DuckDBPyConnection, cut: int) -> list[tuple[str, int, int]]:
    rows = _delete(cursor, SEGMENTS, "hour_ms < $1", cut)
    return [(SEGMENTS, rows, cut)]


def _drop_collectives(cursor: duckdb.DuckDBPyConnection, cut: int) -> list[tuple[str, int, int]]:
    return [
        ("raw.collectives", _delete(cursor, "raw.collectives", "dumped_at < from_ms($1)", cut), cut)
    ]


_DROPS = {
    "gpu_samples": _drop_readings,
    "ledger_segments": _drop_segments,
    "collectives": _drop_collectives,
}


def _delete(cursor: duckdb.DuckDBPyConnection, table: str, where: str, cut: int) -> int:
    return int(cursor.execute(f"delete from {table} where {where}", [cut]).fetchall()[0][0])


def _note(cursor: duckdb.DuckDBPyConnection, table: str, cut: int) -> None:
    cursor.execute("delete from state.kept_from where table_name = $1", [table])
    cursor.execute("insert into state.kept_from values ($1, $2)", [table, cut])


def _ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)
