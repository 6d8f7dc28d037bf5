"""Removes files that were ingested by mistake, as if the database had never loaded them.

Rows carry the number of the load that wrote them. A row that two files contain is stored once and
is deleted with the load that wrote it; the other file must then be ingested again.
"""

import difflib
from collections.abc import Sequence

import duckdb
import polars as pl

from goodput_queries.catalog import models
from goodput_queries.errors import StoreError
from goodput_queries.evidence.load import SEQUENCE
from goodput_queries.evidence.retention import OF_READINGS, kept_from_ms
from goodput_queries.storage.database_file import DatabaseFile


def forget(store: DatabaseFile, origins: Sequence[str]) -> pl.DataFrame:
    """Delete the rows of these origins, and of those below them; the next build is a full build.

    Returns a row an origin: the number of deleted rows, and `is_to_read_again` for other files that
    contain some of these rows, which ingesting them again restores. Raises StoreError, and changes
    nothing, for an unknown origin, for rows of an earlier version without a load number, and for
    readings of frozen hours.
    """
    with store.writing() as cursor:
        _note_gone(cursor, origins)
        tables = [
            t for (t,) in cursor.execute("select distinct table_name from temp.gone").fetchall()
        ]
        for table in tables:
            _check_can_delete(cursor, table)
        _note_missed(cursor)
        cursor.execute("create or replace temp table dropped (sequence bigint, n bigint)")
        for table in tables:
            name = models.base_tables()[table].qualified_name
            rows = f"from {name} where {SEQUENCE} in (select sequence from temp.gone)"
            cursor.execute(
                f"insert into temp.dropped select {SEQUENCE}, count(*) {rows} group by all"
            )
            cursor.execute(f"delete {rows}")
        if "gpu_samples" in tables:
            _forget_series(cursor)
        if "job_events" in tables:
            cursor.execute("delete from state.event_hosts")  # the next build recomputes it
            cursor.execute(
                "delete from state.claimed_logs "
                "where run_id not in (select run_id from raw.job_events)"
            )
        cursor.execute(
            """delete from raw.rejects as rejects where exists (
                from temp.gone
                where gone.source = rejects.source and gone.origin = rejects.origin
            )"""
        )
        cursor.execute(
            "delete from state.ingested where sequence in (select sequence from temp.gone)"
        )
        cursor.execute(  # these parts are not skipped as repeats when they are ingested again
            """update state.ingested set digest = digest || ' ' || sequence, rows = rows_new
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
    """Write the loads of these origins to temp.gone; a folder or an archive includes its files."""
    known = [o for (o,) in cursor.execute("select distinct origin from state.ingested").fetchall()]
    wanted: set[str] = set()
    for origin in origins:
        below = f"{origin.rstrip('/')}/"
        found = {one for one in known if one == origin or one.startswith(below)}
        if not found:
            near = difflib.get_close_matches(origin, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise StoreError(
                f"nothing was ingested from {origin!r}.{hint} "
                "`goodput show state.ingested` lists the ingested files."
            )
        wanted |= found
    cursor.execute(
        """create or replace temp table gone as
        select * from state.ingested where origin in (select unnest($1::varchar[]))""",
        [sorted(wanted)],
    )


def _check_can_delete(cursor: duckdb.DuckDBPyConnection, table: str) -> None:
    """Raise StoreError where rows have no load number, or belong to frozen hours."""
    if cursor.execute(f"select 1 from raw.{table} where {SEQUENCE} is null limit 1").fetchall():
        raise StoreError(
            f"raw.{table} has rows of an earlier version without a record of the file they came "
            "from. Start a new database and ingest the correct files."
        )
    settled_ms = kept_from_ms(cursor, "gpu_samples") if f"raw.{table}" in OF_READINGS else 0
    found = cursor.execute(
        """select origin from temp.gone
        where table_name = $1 and to_ms(window_start_at) < $2 limit 1""",
        [table, settled_ms],
    ).fetchall()
    if found:
        raise StoreError(
            f"{found[0][0]} has readings of hours that are frozen, because [retention] dropped "
            "other readings of them. Ingest all files of that time with --reopen first; then "
            "forget this one."
        )


def _note_missed(cursor: duckdb.DuckDBPyConnection) -> None:
    """Write the other loads that may contain rows deleted now to temp.missed.

    A later load of a row that was already stored wrote no row of its own; an earlier load lost its
    row to a later one where the table keeps the better or the last row of a key.
    """
    keeps = [m.name for m in models.base_tables().values() if m.keep]
    cursor.execute(
        """create or replace temp table missed as
        select others.* from state.ingested as others anti join temp.gone using (sequence)
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
    """Reset the watermarks of readings; the next build extends them from the remaining rows.

    The part before the retained time stays, since no build can compute it again.
    """
    kept_ms = kept_from_ms(cursor, "gpu_samples")
    cursor.execute("delete from state.reading_series where first_ms >= $1", [kept_ms])
    cursor.execute("update state.reading_series set last_ms = least(last_ms, $1 - 1)", [kept_ms])


def forget_ledger(cursor: duckdb.DuckDBPyConnection) -> None:
    """Delete the ledger's hours that the next build computes: some may have lost all evidence."""
    kept_ms = kept_from_ms(cursor, "gpu_samples")
    for model in models.build_order():
        if model.materialised == "hourly":
            cursor.execute(f"delete from {model.qualified_name} where hour_ms >= $1", [kept_ms])
    cursor.execute("delete from state.built")  # forces a full build
    cursor.execute("delete from state.refused_builds")
