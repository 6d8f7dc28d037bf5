"""Brings the loads of a lake into a database: all rows but readings, which stay in the lake."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import duckdb
import polars as pl

from goodput_lake.tables import statuses
from goodput_lake.tables.arrange import DIGEST
from goodput_lake.tables.lake import Lake, LakeCommit
from goodput_lake.tables.loads import EPOCH
from goodput_queries.catalog import models
from goodput_queries.errors import StoreError
from goodput_queries.evidence import load as loading
from goodput_queries.evidence.batch import Batch, Reject
from goodput_queries.ledger_build.lake import READINGS
from goodput_queries.storage.database_file import DatabaseFile

DAY_MS: Final = 86_400_000
ROWS_AT_ONCE: Final = 2_000_000
COMMITS_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Pulled:
    """What a pull brought: loads, and their rows here and in the lake."""

    loads: int
    rows: int
    readings: int


def attach(store: DatabaseFile, url: str) -> None:
    """Make a database one of a lake, which its builds read; repeating it is harmless.

    Raises StoreError where there is no lake, or where the database has evidence of its own or is of
    another lake: what is loaded twice would count twice.
    """
    lake = Lake.open(url)
    if (known := url_of(store)) is None:
        with store.writing() as cursor:
            if cursor.execute("select 1 from state.ingested limit 1").fetchall():
                raise StoreError(
                    f"{store.path}: it has evidence of its own; use a new database for {lake.url}."
                )
            cursor.execute("insert into state.lake_versions values ($1, '', -1)", [lake.url])
    elif known != lake.url:
        raise StoreError(f"{store.path}: it is a database of the lake {known}, not of {lake.url}.")


def url_of(store: DatabaseFile) -> str | None:
    """Return the lake that a database is of; None where it is of none."""
    with store.cursor() as cursor:
        found = cursor.execute("select url from state.lake_versions limit 1").fetchone()
    return None if found is None else str(found[0])


def pull(store: DatabaseFile, lake: Lake, recent_days: int = 0) -> Pulled:
    """Load what was committed to the lake since the last pull, table by table, in order.

    recent_days: readings of so many days, up to the latest one, are kept here too, for pages.
    """
    with store.cursor() as cursor:
        before: dict[str, int] = dict(
            cursor.execute("select table_name, version from state.lake_versions").fetchall()
        )
        from_ms = _recent_from_ms(cursor)
    tables = [name for name in lake.tables() if name != "rejects"]
    found = [one for name in tables for one in lake.commits(name, before.get(name, -1))]
    from_ms = max(from_ms, _days_before_end(found, recent_days))
    for table in tables:
        for commits in _chunks([one for one in found if one.table == table], from_ms):
            rows = _rows(lake, table, commits, from_ms)
            rejects = _rejects(lake, commits)
            with store.writing() as cursor:
                for commit in commits:
                    batch = Batch(
                        table, rows.get(commit.digest, pl.DataFrame()), commit.source,
                        commit.origin, commit.digest, rejects.get(commit.digest, ()),
                    )  # fmt: skip
                    _load(cursor, batch, commit)
                cursor.execute("delete from state.lake_versions where table_name = $1", [table])
                cursor.execute(
                    "insert into state.lake_versions values ($1, $2, $3)",
                    [lake.url, table, commits[-1].version],
                )
    if found:
        _drop_older(store, from_ms)
    _replace_statuses(store, lake)
    readings = sum(one.rows for one in found if f"raw.{one.table}" in READINGS)
    return Pulled(len(found), sum(one.rows for one in found) - readings, readings)


def _chunks(commits: list[LakeCommit], from_ms: int) -> Iterator[list[LakeCommit]]:
    """Yield commits of a table in order, few enough that their rows fit into memory.

    One scan finds the rows of all of them: each scan looks at every file of the table.
    """
    chunk: list[LakeCommit] = []
    rows = 0
    for commit in commits:
        here = commit.rows if _has_rows_here(commit, from_ms) else 0
        if chunk and (rows + here > ROWS_AT_ONCE or len(chunk) == COMMITS_AT_ONCE):
            yield chunk
            chunk, rows = [], 0
        chunk.append(commit)
        rows += here
    if chunk:
        yield chunk


def _has_rows_here(commit: LakeCommit, from_ms: int) -> bool:
    """Say whether rows of a load belong into the database: of readings only recent ones."""
    if f"raw.{commit.table}" not in READINGS:
        return True
    end = commit.window_end_at
    return end is not None and end >= EPOCH + timedelta(milliseconds=from_ms)


def _recent_from_ms(cursor: duckdb.DuckDBPyConnection) -> int:
    found = cursor.execute("select max(from_ms) from state.lake_readings").fetchall()[0][0]
    return 0 if found is None else int(found)


def _days_before_end(commits: list[LakeCommit], days: int) -> int:
    """Return the start of so many days up to the latest reading; after all of them for none.

    A reading of the future, which is wrong, counts as one of when it was committed.
    """
    ends = [
        min(one.window_end_at, one.committed_at)
        for one in commits
        if f"raw.{one.table}" in READINGS and one.window_end_at is not None
    ]
    if not ends:
        return 0
    latest: int = (max(ends) - EPOCH) // timedelta(milliseconds=1)
    return (latest // DAY_MS - days + 1) * DAY_MS


def _drop_older(store: DatabaseFile, from_ms: int) -> None:
    """Drop readings that are no longer recent; the lake has them."""
    with store.writing() as cursor:
        for table in READINGS:
            cursor.execute(f"delete from {table} where ts < from_ms({from_ms})")
        cursor.execute("delete from state.lake_readings")
        cursor.execute("insert into state.lake_readings values ($1)", [from_ms])


def _replace_statuses(store: DatabaseFile, lake: Lake) -> None:
    """Take over the statuses of the live sources of all clusters."""
    found = statuses.read(lake).drop("cluster")
    if found.is_empty():
        return
    with store.writing() as cursor:
        cursor.execute(f"delete from state.{statuses.TABLE}")
        cursor.register("given", found.to_arrow())
        cursor.execute(
            f"""insert into state.{statuses.TABLE} by name
            from given
            qualify row_number() over (partition by source, origin order by asked_at desc) = 1"""
        )
        cursor.unregister("given")


def _load(cursor: duckdb.DuckDBPyConnection, batch: Batch, commit: LakeCommit) -> None:
    """Load a commit as a batch; of readings the note that all are there, and recent ones."""
    model = models.base_tables()[commit.table]
    loaded = loading.load(cursor, model, batch)
    if model.qualified_name in READINGS and not loaded.is_repeat:
        cursor.execute(
            """update state.ingested
            set rows = $1, rows_new = $1, window_start_at = $2, window_end_at = $3
            where (source, digest, table_name) = ($4, $5, $6)""",
            [commit.rows, commit.window_start_at, commit.window_end_at,
             commit.source, commit.digest, commit.table],
        )  # fmt: skip


def _rows(
    lake: Lake, table: str, commits: list[LakeCommit], from_ms: int
) -> dict[str, pl.DataFrame]:
    """Return the rows of loads by digest, wherever compaction has put them."""
    digests = [one.digest for one in commits if _has_rows_here(one, from_ms)]
    if not digests:
        return {}
    is_in_lake = f"raw.{table}" in READINGS
    start_at = EPOCH + timedelta(milliseconds=from_ms) if is_in_lake else None
    found = lake.rows(table, digests=digests, start_at=start_at)
    frame: pl.DataFrame = pl.from_arrow(found.read_all())  # type: ignore[assignment]
    parts = frame.partition_by(DIGEST, as_dict=True, include_key=False, maintain_order=True)
    return {str(digest): rows for (digest,), rows in parts.items()}


def _rejects(lake: Lake, commits: list[LakeCommit]) -> dict[str, list[Reject]]:
    """Return the rejects of loads by digest."""
    known = {f"{one.digest} {one.table}": one.digest for one in commits if one.rejects}
    found: dict[str, list[Reject]] = defaultdict(list)
    if known:
        rows = lake.rows("rejects", digests=list(known)).read_all().to_pylist()
        for row in rows:
            reject = Reject(row["line"], row["reason"], row["content"])
            found[known[row[DIGEST]]].append(reject)
    return found
