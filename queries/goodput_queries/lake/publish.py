"""Writes closed hours of a ledger into a lake, where other engines read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import deltalake
import polars as pl
from deltalake import exceptions as delta_errors

from goodput_queries.errors import StoreError
from goodput_queries.lake import delta
from goodput_queries.lake.arrange import CLUSTER, DAY

if TYPE_CHECKING:
    from datetime import date

    from goodput_queries.lake.lake import Lake
    from goodput_queries.storage.store import Store

TABLE: Final = "ledger/ledger_hourly"
SCHEMA: Final = {"cluster": pl.String, "day": pl.Date, "rows": pl.Int64}
# an hour is closed once the evidence of its cluster reaches its end; late evidence changes it still
CLOSED: Final = f"""(
    select hours.*, hours.cluster as {CLUSTER}, from_ms(hours.hour_ms)::date as {DAY}
    from marts.ledger_hourly as hours
    inner join intermediate.int_clusters as clusters using (cluster)
    where hours.hour_ms + 3600000 <= clusters.as_of_ms
)"""
# of the content of a day, in any order of its rows
DAYS: Final = f"""select {CLUSTER}, {DAY}, (bit_xor(hash(hours)) >> 1)::bigint as content
    from {CLOSED} as hours group by all order by all"""


def publish(store: Store, lake: Lake) -> pl.DataFrame:
    """Write the days of each cluster whose closed hours changed; return a row for each.

    A day is replaced as a whole in one commit, which notes its content: a repeat writes nothing.
    Days that the database does not have stay. Raises StoreError where the lake cannot be written.
    """
    url, found = f"{lake.url}/{TABLE}", None
    written = []
    for cluster, day, content in store.read(DAYS).iter_rows():
        key = f"{cluster} {day}"
        if found is None:
            found = _created(store, lake, url)
        if found.transaction_version(key) == content:
            continue
        rows = store.read(
            f"select * from {CLOSED} where {CLUSTER} = $1 and {DAY} = $2", [cluster, day]
        )
        try:
            _replace(found, rows, cluster, day, deltalake.Transaction(key, content))
        except delta_errors.CommitFailedError as error:
            raise StoreError(f"{url}: another process publishes to it now.") from error
        except delta.FAILED as error:
            raise StoreError(f"{url}: cannot be written: {delta.first_line(error)}") from error
        written.append((cluster, day, rows.height))
    return pl.DataFrame(written, schema=SCHEMA, orient="row")


def _created(store: Store, lake: Lake, url: str) -> deltalake.DeltaTable:
    if (found := delta.opened(url, lake.storage_options)) is None:
        empty = store.read(f"select * from {CLOSED} limit 0").to_arrow()
        schema = deltalake.Schema.from_arrow(empty.schema).to_arrow()
        delta.create(url, schema, {}, lake.storage_options, partition_by=[CLUSTER, DAY])
        found = delta.opened(url, lake.storage_options)
    if found is None:
        raise StoreError(f"{url}: cannot be created.")
    return found


def _replace(
    table: deltalake.DeltaTable,
    rows: pl.DataFrame,
    cluster: str,
    day: date,
    content: deltalake.Transaction,
) -> None:
    quoted = cluster.replace("'", "''")
    deltalake.write_deltalake(
        table,
        rows,
        mode="overwrite",
        predicate=f"{CLUSTER} = '{quoted}' and {DAY} = '{day}'",
        schema_mode="merge",
        writer_properties=deltalake.WriterProperties(compression="ZSTD"),
        commit_properties=deltalake.CommitProperties(app_transactions=[content]),
    )
