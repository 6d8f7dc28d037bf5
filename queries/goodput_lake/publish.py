"""Writes closed hours of a ledger, and days of roll-ups, into a lake, for other engines."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import polars as pl
import pyarrow as pa

from goodput_lake.tables import delta
from goodput_lake.tables.arrange import CLUSTER, DAY
from goodput_lake.tables.delta import delta_errors, deltalake
from goodput_lake.tables.lake import Lake
from goodput_queries.errors import StoreError
from goodput_queries.scope import Scope
from goodput_queries.storage.database_file import DatabaseFile, Reader

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
EPOCH: Final = date(1970, 1, 1)
SCHEMA: Final = {"table": pl.String, "cluster": pl.String, "day": pl.Date, "rows": pl.Int64}


@dataclass(frozen=True)
class Published:
    """A mart that goes into the lake, in `ledger/NAME`.

    time: its column of time, epoch ms. unit_ms: what has to be over: an hour, or the day.
    """

    name: str
    time: str
    unit_ms: int

    @property
    def path(self) -> str:
        """Return the place of the table below the URL of the lake."""
        return f"ledger/{self.name}"

    @property
    def sql(self) -> str:
        """Return the select of the rows of a time, `$1` to before `$2`, and the cluster `$3`."""
        return f"""(
            select *, cluster as {CLUSTER}, from_ms({self.time})::date as {DAY}
            from marts.{self.name}
            where {self.time} >= $1 and {self.time} < $2 and cluster = $3
        )"""


LEDGER: Final = Published("ledger_hourly", "hour_ms", HOUR_MS)
# a day of it is too much to be written again each hour
METRICS: Final = Published("gpu_metrics", "start_ms", DAY_MS)
TABLES: Final = {one.name: one for one in (LEDGER, METRICS)}
Day = tuple[str, str, date]  # table, cluster


def publish(store: Reader, lake: Lake, days: Iterable[Day] | None = None) -> pl.DataFrame:
    """Write the days whose closed hours changed; return a row for each.

    A day is replaced as a whole in one commit, which notes its content: a repeat writes nothing.
    Days that the database does not have stay. Raises StoreError where the lake cannot be written.

    days: which to look at; None: all.
    """
    ends = _ends(store)
    written = []
    for name, cluster, day in _all_days(store) if days is None else days:
        table = TABLES[name]
        bounds = _bounds(table, day, ends.get(cluster))
        if bounds is not None and (rows := _publish_day(store, lake, table, cluster, bounds)):
            written.append((name, cluster, day, rows))
    return pl.DataFrame(written, schema=SCHEMA, orient="row")


def publish_noted(store: DatabaseFile, lake: Lake) -> None:
    """Write the days that builds changed, and forget those that no hour is missing of.

    A process that is killed in between leaves them noted: the next one writes what is missing.
    """
    noted = store.read("from state.unpublished_days order by table_name desc, day, cluster").rows()
    publish(store, lake, [row[:3] for row in noted])
    ends = _ends(store)
    with store.writing(changes_views=False) as cursor:
        for name, cluster, day, sequence in noted:
            if _bounds(TABLES[name], day, ends.get(cluster)) is not None:
                cursor.execute(
                    """delete from state.unpublished_days
                    where (table_name, cluster, day, sequence) = ($1, $2, $3, $4)""",
                    [name, cluster, day, sequence],
                )


def _ends(store: Reader) -> dict[str, int]:
    """Return until when each cluster has evidence."""
    return dict(store.read("select cluster, as_of_ms from intermediate.int_clusters").iter_rows())


def _all_days(store: Reader) -> list[Day]:
    found = store.read(
        """select cluster, unnest(generate_series(
            from_ms(first_ms)::date, from_ms(as_of_ms)::date, interval 1 day))::date as day
        from intermediate.int_clusters order by all"""
    )
    return [(name, cluster, day) for name in TABLES for cluster, day in found.iter_rows()]


def _bounds(table: Published, day: date, end_ms: int | None) -> tuple[int, int] | None:
    """Return the closed time of a day; None where no hour, or not the day, is over.

    An hour is closed once the evidence of its cluster reaches its end; late evidence still
    changes it.
    """
    start_ms = (day - EPOCH) // timedelta(milliseconds=1)
    until_ms = min((end_ms or 0) // table.unit_ms * table.unit_ms, start_ms + DAY_MS)
    return (start_ms, until_ms) if until_ms > start_ms else None


def _publish_day(
    store: Reader, lake: Lake, table: Published, cluster: str, bounds: tuple[int, int]
) -> int:
    """Replace a day in the lake unless it has this content; return the rows written."""
    content, rows = store.read(
        f"select (bit_xor(hash(rows)) >> 1)::bigint, count(*) from {table.sql} as rows",
        [*bounds, cluster],
        scope=Scope(*bounds),
    ).row(0)
    if not rows:
        return 0
    url, day = f"{lake.url}/{table.path}", EPOCH + timedelta(milliseconds=bounds[0])
    found = _created(store, lake, table)
    if found.transaction_version(_key(cluster, day)) == content:
        return 0
    try:
        _replace(found, _hours(store, table, cluster, bounds), (cluster, day), content)
    except delta_errors.CommitFailedError as error:
        raise StoreError(f"{url}: another process publishes to it now.") from error
    except delta.FAILED as error:
        raise StoreError(f"{url}: cannot be written: {delta.first_line(error)}") from error
    return int(rows)


def _created(store: Reader, lake: Lake, table: Published) -> deltalake.DeltaTable:
    url = f"{lake.url}/{table.path}"
    if (found := delta.opened(url, lake.storage_options)) is None:
        empty = store.read(f"select * from {table.sql} limit 0", [0, 0, ""]).to_arrow()
        schema = deltalake.Schema.from_arrow(empty.schema).to_arrow()
        delta.create(url, schema, {}, lake.storage_options, partition_by=[CLUSTER, DAY])
        found = delta.opened(url, lake.storage_options)
    if found is None:
        raise StoreError(f"{url}: cannot be created.")
    return found


def _hours(
    store: Reader, table: Published, cluster: str, bounds: tuple[int, int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a day hour by hour: of a large cluster a day does not fit into memory."""
    for start_ms in range(*bounds, HOUR_MS):
        hour = start_ms, start_ms + HOUR_MS
        rows = store.read(f"from {table.sql}", [*hour, cluster], scope=Scope(*hour))
        yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _replace(
    table: deltalake.DeltaTable, rows: Iterator[pa.RecordBatch], day: tuple[str, date], content: int
) -> None:
    """Replace a day of a cluster in one commit, which notes its content."""
    first = next(rows)
    quoted = day[0].replace("'", "''")
    deltalake.write_deltalake(
        table,
        pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], rows)),
        mode="overwrite",
        predicate=f"{CLUSTER} = '{quoted}' and {DAY} = '{day[1]}'",
        schema_mode="merge",
        writer_properties=delta.WRITER,
        commit_properties=deltalake.CommitProperties(
            app_transactions=[deltalake.Transaction(_key(*day), content)]
        ),
    )


def _key(cluster: str, day: date) -> str:
    return f"{cluster} {day}"
