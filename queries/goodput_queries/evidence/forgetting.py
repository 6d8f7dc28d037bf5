"""Forgetting what was read in by mistake: the database as if it had never seen it.

Rows carry the number of the load that wrote them. Where two files told one row it is there once
and goes with the load that wrote it; the other file is then to be read in again, and may be.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from goodput_queries.catalog import models
from goodput_queries.errors import StoreError
from goodput_queries.evidence.load import SEQUENCE
from goodput_queries.evidence.retention import OF_READINGS, kept_from_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    import polars as pl

    from goodput_queries.storage.store import LocalStore


def forget(store: LocalStore, origins: Sequence[str]) -> pl.DataFrame:
    """Drop what was read from these origins, or from below them; the next build makes all anew.

    Returns a row an origin: the rows that went, and `is_to_read_again` for files that are kept but
    told some of what went, which reading them in again gives back. Raises StoreError, and changes
    nothing, for an origin that is not known, for rows of an earlier version that do not tell their
    load, and for readings of time whose hours are settled.
    """
    with store.writing() as cursor:
        _note_gone(cursor, origins)
        tables = [
            t for (t,) in cursor.execute("select distinct table_name from temp.gone").fetchall()
        ]
        for table in tables:
            _refuse_where_rows_do_not_tell(cursor, table)
        _note_missed(cursor)
        cursor.execute("create or replace temp table dropped (sequence bigint, n bigint)")
        for table in tables:
            rows = f"from raw.{table} where {SEQUENCE} in (select sequence from temp.gone)"
            cursor.execute(
                f"insert into temp.dropped select {SEQUENCE}, count(*) {rows} group by all"
            )
            cursor.execute(f"delete {rows}")
        if "gpu_samples" in tables:
            _forget_series(cursor)
        if "job_events" in tables:
            cursor.execute("delete from raw.event_hosts")  # the next build has it anew
        cursor.execute(
            """delete from raw.rejects as rejects where exists (
                from temp.gone
                where gone.source = rejects.source and gone.origin = rejects.origin
            )"""
        )
        cursor.execute(
            "delete from raw.ingested where sequence in (select sequence from temp.gone)"
        )
        cursor.execute(  # the part is no repeat when it comes again; what it did write stays told
            """update raw.ingested set digest = digest || ' ' || sequence, rows = rows_new
            where sequence in (select sequence from temp.missed)"""
        )
        forget_ledger(cursor)
        found: pl.DataFrame = cursor.sql(
            """select origin, coalesce(sum(n), 0)::bigint as rows, false as is_to_read_again
            from temp.gone left join temp.dropped using (sequence) group by origin
            union all
            select distinct origin, 0, true from temp.missed
            order by is_to_read_again, origin"""
        ).pl()
    return found


def _note_gone(cursor: duckdb.DuckDBPyConnection, origins: Sequence[str]) -> None:
    """Keep the loads of these origins as temp.gone; a folder or an archive has what is in it."""
    known = [o for (o,) in cursor.execute("select distinct origin from raw.ingested").fetchall()]
    wanted: set[str] = set()
    for origin in origins:
        below = f"{origin.rstrip('/')}/"
        found = {one for one in known if one == origin or one.startswith(below)}
        if not found:
            near = difflib.get_close_matches(origin, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise StoreError(
                f"nothing was read in from {origin!r}.{hint} "
                "`goodput show raw.ingested` lists what was."
            )
        wanted |= found
    cursor.execute(
        """create or replace temp table gone as
        select * from raw.ingested where origin in (select unnest($1::varchar[]))""",
        [sorted(wanted)],
    )


def _refuse_where_rows_do_not_tell(cursor: duckdb.DuckDBPyConnection, table: str) -> None:
    if cursor.execute(f"select 1 from raw.{table} where {SEQUENCE} is null limit 1").fetchall():
        raise StoreError(
            f"raw.{table} has rows of an earlier version, which do not tell where they came from: "
            "start a new database and ingest what is right."
        )
    settled_ms = kept_from_ms(cursor, "gpu_samples") if f"raw.{table}" in OF_READINGS else 0
    found = cursor.execute(
        """select origin from temp.gone
        where table_name = $1 and to_ms(window_start_at) < $2 limit 1""",
        [table, settled_ms],
    ).fetchall()
    if found:
        raise StoreError(
            f"{found[0][0]}: it has readings of time that [retention] dropped, whose hours are "
            "frozen. Ingest all files of that time with --reopen first; then it can be forgotten."
        )


def _note_missed(cursor: duckdb.DuckDBPyConnection) -> None:
    """Keep the other loads that may have told rows that go now as temp.missed.

    A later load that told what was there already wrote no row of its own for it; an earlier one
    lost its row to a later one where a table keeps the better or the last.
    """
    keeps = [m.name for m in models.of_layer("raw").values() if m.directives.get("keep")]
    cursor.execute(
        """create or replace temp table missed as
        select others.* from raw.ingested as others anti join temp.gone using (sequence)
        where exists (
            from temp.gone as gone
            where gone.source = others.source and gone.table_name = others.table_name
                and coalesce(gone.window_start_at <= others.window_end_at, true)
                and coalesce(gone.window_end_at >= others.window_start_at, true)
                and case
                    when others.sequence > gone.sequence then others.rows_new < others.rows
                    else gone.rows_new < gone.rows and gone.table_name in (select unnest($1))
                end
        )""",
        [keeps],
    )


def _forget_series(cursor: duckdb.DuckDBPyConnection) -> None:
    """Take back what the readings that go said of how long GPUs were read; a build adds the rest.

    What was read before the time that is kept no build can add again: it stays.
    """
    kept_ms = kept_from_ms(cursor, "gpu_samples")
    cursor.execute("delete from raw.reading_series where first_ms >= $1", [kept_ms])
    cursor.execute("update raw.reading_series set last_ms = least(last_ms, $1 - 1)", [kept_ms])


def forget_ledger(cursor: duckdb.DuckDBPyConnection) -> None:
    """Empty the hours that the next build makes, some of which nothing may tell of any more."""
    kept_ms = kept_from_ms(cursor, "gpu_samples")
    for model in models.build_order():
        if model.materialised == "hourly":
            cursor.execute(f"delete from {model.qualified_name} where hour_ms >= $1", [kept_ms])
    if cursor.execute("from duckdb_tables() where table_name = 'built'").fetchall():
        cursor.execute("delete from intermediate.built")  # so that all is built anew
