"""Rejects readings of implausible time that are in a lake, as a database does with its own.

They stay in the lake. What is known of their load, `state.ingested`, then ends with its last
plausible reading: tasks and pages read none that is outside.
"""

from datetime import datetime

import duckdb

from goodput_lake.tables.arrange import DIGEST
from goodput_lake.tables.lake import Lake
from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.evidence import implausible, plausible
from goodput_queries.evidence.load import SEQUENCE
from goodput_queries.ledger_build.lake import READINGS

FETCHED = "temp.fetched_readings"


def reject_implausible_readings(
    cursor: duckdb.DuckDBPyConnection, lake: Lake, since: int | None
) -> bool:
    """Move readings of implausible time to raw.rejects; return whether builds have used any.

    since: only those of later loads, which no build has used; None: of all loads.
    """
    latest = implausible.latest_plausible(cursor)
    found = False
    for name in READINGS:
        model = models.base_tables()[name.split(".")[1]]
        digests = _note_suspects(cursor, model, latest, since)
        if digests:
            _fetch(cursor, lake, model, digests)
            found |= implausible.reject_rows(cursor, model, FETCHED, latest, since)
            cursor.execute(f"drop table {FETCHED}")
            _delete_here(cursor, model)
    if not found or since is not None:
        return False
    implausible.forget_spans(cursor, latest)
    return True


def _note_suspects(
    cursor: duckdb.DuckDBPyConnection, model: Model, latest: datetime | None, since: int | None
) -> list[str]:
    """Write loads to temp.suspect_loads whose times are not all plausible; return digests."""
    cursor.execute(
        f"""create or replace temp table suspect_loads as
        select sequence as {SEQUENCE}, digest as {DIGEST}
        from state.ingested
        where table_name = $1 and sequence > $2
            and (
                window_start_at < $3 or window_end_at > $4
                or window_end_at - window_start_at > to_days($5::integer)
            )""",
        [
            model.name,
            -1 if since is None else since,
            plausible.EARLIEST,
            latest,
            plausible.BULK_GAP_DAYS,
        ],
    )
    found = cursor.execute(f"select distinct {DIGEST} from temp.suspect_loads").fetchall()
    return [digest for (digest,) in found]


def _fetch(cursor: duckdb.DuckDBPyConnection, lake: Lake, model: Model, digests: list[str]) -> None:
    """Copy all rows of these loads from the lake to a temporary table like the raw one."""
    cursor.execute(
        f"create or replace temp table fetched_readings as from {model.qualified_name} limit 0"
    )
    cursor.register("given", lake.rows(model.name, digests=digests))
    cursor.execute(
        f"""insert into {FETCHED} by name
        select * exclude ({DIGEST}) from given inner join temp.suspect_loads using ({DIGEST})"""
    )
    cursor.unregister("given")


def _delete_here(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Delete the rejected rows from the recent readings that this database has itself."""
    time = model.time
    cursor.execute(
        f"""delete from {model.qualified_name} as readings
        using state.ingested as loads
        where loads.sequence = readings.{SEQUENCE}
            and loads.sequence in (select {SEQUENCE} from temp.suspect_loads)
            and ({time} between window_start_at and window_end_at) is not true"""
    )
