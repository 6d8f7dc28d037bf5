"""Moves rows of implausible time that are already in the database to the rejects.

Ingest rejects them before they are loaded, but a database may be older than that check. One reading
of 2036 moves the end of a cluster's evidence there, one of 1970 makes half a million hours.
"""

from collections.abc import Iterable
from datetime import datetime

import duckdb

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.evidence import plausible
from goodput_queries.evidence.batch import REJECT_CONTENT_MAX_CHARS
from goodput_queries.evidence.load import SEQUENCE
from goodput_queries.evidence.retention import keep_from

HOUR_MS = 3_600_000


def reject_implausible_rows(
    cursor: duckdb.DuckDBPyConnection, tables: Iterable[str], since: int | None
) -> bool:
    """Move rows of implausible time to raw.rejects; return whether there were any.

    tables: the raw tables to look at, as `raw.x`; since: only rows of later loads; None: all rows.
    """
    latest = latest_plausible(cursor)
    found = False
    for model in models.of_layer("raw").values():
        if model.qualified_name in tables and (model.observed or model.planned):
            found |= reject_rows(cursor, model, model.qualified_name, latest, since)
    is_repaired = latest is not None and _limit_kept_from(cursor, latest)
    if found:
        forget_spans(cursor, latest)
    return found or is_repaired


def reject_rows(
    cursor: duckdb.DuckDBPyConnection,
    model: Model,
    table: str,
    latest: datetime | None,
    since: int | None,
) -> bool:
    """Move implausible rows of a raw table to raw.rejects; return whether there were any.

    table: where its rows are: itself, or a table with all rows of some loads.
    """
    reasons = [*_reasons(model, latest), *_apart(cursor, model, table, since)]
    later = "" if since is None else f" and {SEQUENCE} > {since}"
    # one condition at a time: zone maps answer that without reading rows
    any_bad = " union all ".join(
        f"select 1 from {table} where {condition}{later}" for condition, _ in reasons
    )
    if not cursor.execute(f"{any_bad} limit 1").fetchall():
        return False
    where = f"({' or '.join(condition for condition, _ in reasons)}){later}"
    _reject(cursor, model, table, reasons, where)
    return True


def latest_plausible(cursor: duckdb.DuckDBPyConnection) -> datetime | None:
    """Return the latest plausible time; None where this machine's clock is not usable.

    That is where most of the rows lie ahead of it, and of all moments at which rows were loaded:
    a machine that lost its time, or evidence that was made up.
    """
    known = plausible.utc_now()
    loaded = cursor.execute("select max(loaded_at) from state.ingested").fetchall()[0][0]
    latest: datetime = max(known, loaded or known) + plausible.AHEAD_MAX
    ahead, rows = cursor.execute(
        """select sum(rows) filter (where first_at > $1), sum(rows)
        from (
            select rows, window_start_at as first_at from state.ingested
            where window_start_at is not null
            union all
            select 1, submit_at from raw.job_runs
        )""",
        [latest],
    ).fetchall()[0]
    return None if 2 * (ahead or 0) > (rows or 0) else latest


def _reasons(model: Model, latest: datetime | None) -> list[tuple[str, str]]:
    """Return conditions under which rows are rejected, and why."""
    early = f"timestamp '{plausible.EARLIEST}'"
    found = [
        (f"{column} < {early}", plausible.before(column, plausible.EARLIEST))
        for column in (*model.observed, *model.planned)
    ]
    if latest is not None:
        found += [
            (f"{column} > timestamp '{latest}'", plausible.ahead(column))
            for column in model.observed
        ]
    return found


def _apart(
    cursor: duckdb.DuckDBPyConnection, model: Model, table: str, since: int | None
) -> list[tuple[str, str]]:
    """Return conditions and reasons for rows of a load that lie apart from its bulk."""
    time = model.time
    if time is None:
        return []
    loads = cursor.execute(
        """select sequence from state.ingested
        where table_name = $1 and sequence > $2
            and window_end_at - window_start_at > to_days($3::integer)""",
        [model.name, -1 if since is None else since, plausible.BULK_GAP_DAYS],
    ).fetchall()
    found: list[tuple[str, str]] = []
    for (sequence,) in loads:
        days = cursor.execute(
            f"""select epoch_us({time}) // 86400000000, count(*) from {table}
            where {SEQUENCE} = {sequence} and {time} >= timestamp '{plausible.EARLIEST}'
                and {time} < timestamp '{plausible.utc_now() + plausible.AHEAD_MAX}'
            group by all"""
        ).fetchall()
        if (bulk := plausible.bulk_of(dict(days))) is not None:
            first, after = (f"make_timestamp({d * 86_400_000_000})" for d in (bulk[0], bulk[1] + 1))
            outside = f"{SEQUENCE} = {sequence} and ({time} < {first} or {time} >= {after})"
            found.append((outside, plausible.far(time)))
    return found


def _reject(
    cursor: duckdb.DuckDBPyConnection,
    model: Model,
    table: str,
    reasons: list[tuple[str, str]],
    where: str,
) -> None:
    cases = " ".join(f"when {condition} then '{reason}'" for condition, reason in reasons)
    cursor.execute(
        f"""create or replace temp table implausible as
        select {SEQUENCE}, case {cases} end as reason, given::varchar as content
        from {table} as given where {where}"""
    )
    cursor.execute(
        """insert into raw.rejects (source, origin, line, reason, content)
        select distinct loads.source, loads.origin, null, reason, left(content, $1)
        from temp.implausible
        inner join state.ingested as loads on loads.sequence = load_sequence""",
        [REJECT_CONTENT_MAX_CHARS],
    )
    cursor.execute(f"delete from {table} where {where}")
    cursor.execute(
        f"""update state.ingested as loads set
            rows_new = greatest(0, loads.rows_new - gone.n), rejects = loads.rejects + gone.n
        from (select {SEQUENCE}, count(*) as n from temp.implausible group by all) as gone
        where loads.sequence = gone.{SEQUENCE}"""
    )
    if time := model.time:
        cursor.execute(
            f"""update state.ingested as loads set
                window_start_at = kept.first_at, window_end_at = kept.last_at
            from (
                select gone.{SEQUENCE} as sequence, min({time}) as first_at, max({time}) as last_at
                from (select distinct {SEQUENCE} from temp.implausible) as gone
                left join {table} using ({SEQUENCE})
                group by all
            ) as kept
            where loads.sequence = kept.sequence"""
        )
    cursor.execute("drop table temp.implausible")


def _limit_kept_from(cursor: duckdb.DuckDBPyConnection, latest: datetime) -> bool:
    """Unfreeze hours in the future; return whether there were any.

    What a reading of the future made `goodput prune` drop is gone, but what is read from now on
    counts again: hours are kept from the first reading on that is still there.
    """
    if not cursor.execute(
        "select 1 from state.kept_from where from_ms(kept_from_ms) > $1", [latest]
    ).fetchall():
        return False
    kept_ms = cursor.execute(
        f"""select to_ms(coalesce(min(ts), $1::timestamp)) // {HOUR_MS} * {HOUR_MS}
        from raw.gpu_samples""",
        [latest],
    ).fetchall()[0][0]
    keep_from(cursor, kept_ms)
    cursor.execute("update state.kept_from set kept_from_ms = least(kept_from_ms, $1)", [kept_ms])
    return True


def forget_spans(cursor: duckdb.DuckDBPyConnection, latest: datetime | None) -> None:
    """Delete implausible watermarks of series and hosts.

    The full build that follows notes them again.
    """
    # what was read before the time that is kept no build can note again
    cursor.execute(
        """update state.reading_series set last_ms = kept_from_ms - 1
        from state.kept_from
        where table_name = 'gpu_samples' and from_ms(first_ms) >= $1
            and first_ms < kept_from_ms and from_ms(last_ms) > $2""",
        [plausible.EARLIEST, latest],
    )
    cursor.execute(
        """delete from state.reading_series
        where from_ms(first_ms) < $1 or from_ms(last_ms) > coalesce($2, from_ms(last_ms))""",
        [plausible.EARLIEST, latest],
    )
    cursor.execute("delete from state.event_hosts")
