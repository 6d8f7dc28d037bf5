"""Bringing the ledger up to date: the small interval tables anew, then only the hours they touch.

Stages marked `full` (units, holds, timelines ...) are run-length encoded and cheap: each is made
anew and compared, hour by hour, with what stood there. Hours in which an interval changed are
dirty; so are hours in which readings arrived, and all since the last build's end of evidence.
Stages marked `hourly` (telemetry states, the ledger) are replaced for dirty hours alone. A full
build takes the same road with every hour dirty, so that both give the same rows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from goodput_queries import catalog, placement
from goodput_queries.describe import describe
from goodput_queries.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from goodput_queries.catalog import Model
    from goodput_queries.store import LocalStore

HOUR_MS = 3_600_000
IDLE_MARGIN_MS = (
    300_000  # what happens within idle_min_ms of an hour may change what the hour is called
)
PASS_MAX_GPU_HOURS = 48_000  # bounds the memory of one pass: about 2 GB
SUMMARY_SCHEMA = {"stage": pl.String, "rows": pl.Int64, "seconds": pl.Float64}
Hours = set[int]


def build(store: LocalStore, *, is_full: bool = False) -> pl.DataFrame:
    """Build what changed since the last build; return stage, rows and seconds, one row a stage."""
    timings: list[tuple[str, int, float]] = []
    with store.writing() as cursor:
        cursor.execute(
            "create table if not exists intermediate.built "
            "(cluster varchar, as_of_ms bigint, sequence bigint)"
        )
        sequence = _scalar(cursor, "select coalesce(max(sequence), 0) from raw.ingested")
        before = _scalar(cursor, "select max(sequence) from intermediate.built")
        is_full = is_full or before is None
        if before == sequence and not is_full:
            return pl.DataFrame([], schema=SUMMARY_SCHEMA)
        readings = _reading_hours(cursor, None if is_full else before)
        _note_reading_spans(cursor, readings)
        with _timed(timings, "placement") as done:
            dirty, done.rows = _place(cursor)
        is_moved = False
        for model in catalog.build_order():
            if model.materialised is None or model.layer == catalog.PASS_LAYER:
                continue
            with _timed(timings, model.name) as done:
                if model.materialised == "full":
                    changed, done.rows = _replace_all(cursor, model)
                    dirty |= changed
                elif model.layer == "intermediate":
                    done.rows = _replace_hours(cursor, model, readings)
                else:
                    if not is_moved:
                        dirty |= readings | _hours_since_last_end(cursor)
                        is_moved = True
                    hours = _all_hours(cursor) if is_full else dirty & _all_hours(cursor)
                    done.rows = _replace_hours(cursor, model, hours)
        cursor.execute("delete from intermediate.built")
        cursor.execute(
            "insert into intermediate.built "
            "select cluster, as_of_ms, $1 from intermediate.int_clusters "
            "union all select null, null, $1",
            [sequence],
        )
    return pl.DataFrame(timings, schema=SUMMARY_SCHEMA, orient="row")


def _place(cursor: duckdb.DuckDBPyConnection) -> tuple[Hours, int]:
    """Put holds on GPUs; return the hours in which a hold changed."""
    holds, conflicts = placement.place(cursor)
    dirty: Hours = set()
    for name, rows in (("int_holds", holds), ("int_hold_conflicts", conflicts)):
        model = catalog.models("intermediate")[name]
        cursor.register("placed", rows.to_arrow())
        dirty |= _swap(cursor, model, "select * from placed", ["start_ms", "end_ms"])
        cursor.unregister("placed")
    return dirty, holds.height


def _replace_all(cursor: duckdb.DuckDBPyConnection, model: Model) -> tuple[Hours, int]:
    """Make a `full` stage anew; return the hours in which it changed and its rows."""
    bounds = [c.strip() for c in model.directives.get("dirties", "").split(",") if c.strip()]
    dirty = _swap(cursor, model, model.sql, bounds)
    return dirty, _scalar(cursor, f"select count(*) from {model.qualified_name}") or 0


def _swap(
    cursor: duckdb.DuckDBPyConnection, model: Model, select: str, bounds: Sequence[str]
) -> Hours:
    """Put a new table in the place of a stage; return the hours in which its intervals changed.

    A new table rather than new rows: the planner has its true size in the same transaction, and the
    file holds no dead ones.
    """
    name, draft = model.qualified_name, f"{model.qualified_name}_next"
    try:
        cursor.execute(f"create or replace table {draft} as {select}")
    except duckdb.Error as error:
        raise BuildError(f"{name} cannot be built: {error}") from error
    dirty = _changed_hours(cursor, draft, name, bounds) if bounds else set()
    cursor.execute(f"drop table {name}")
    cursor.execute(f"alter table {draft} rename to {model.name}")
    describe(cursor, model)
    return dirty


def _changed_hours(
    cursor: duckdb.DuckDBPyConnection, draft: str, table: str, bounds: Sequence[str]
) -> Hours:
    """Return the hours in which the intervals of `draft` differ from those of `table`.

    Intervals are cut at hours before they are compared, so that a job that ends after three days
    reopens its last hour, not three days. A null end is compared at the end of the evidence.
    """
    start, end = bounds
    until = f"coalesce({end}, (select max(as_of_ms) from intermediate.int_clusters))"
    cut = f"""select * exclude ({start}, {end}),
        greatest({start}, hour * {HOUR_MS}) as cut_start,
        least(until_ms, (hour + 1) * {HOUR_MS}) as cut_end
    from (
        select *, unnest(range({start} // {HOUR_MS}, (until_ms - 1) // {HOUR_MS} + 1)) as hour
        from (select *, {until} as until_ms from {{table}})
    )"""
    new, old = cut.format(table=draft), cut.format(table=table)
    rows = cursor.execute(
        f"""with new_cells as ({new}), old_cells as ({old}),
        changed as (
            (select * from new_cells except all select * from old_cells)
            union all
            (select * from old_cells except all select * from new_cells)
        )
        select distinct unnest([
            (cut_start - {IDLE_MARGIN_MS}) // {HOUR_MS},
            hour,
            (cut_end + {IDLE_MARGIN_MS}) // {HOUR_MS}
        ])
        from changed"""
    ).fetchall()
    return {hour for (hour,) in rows}


def _replace_hours(cursor: duckdb.DuckDBPyConnection, model: Model, hours: Hours) -> int:
    """Replace an `hourly` stage for these hours; return how many rows were written."""
    rows = 0
    units = _scalar(cursor, "select count(*) from intermediate.int_gpu_units") or 1
    for first, last in _ranges(hours, max(1, PASS_MAX_GPU_HOURS // units)):
        _set_pass(cursor, first, last)
        cursor.execute(
            f"delete from {model.qualified_name} where hour_ms >= $1 and hour_ms < $2",
            [first * HOUR_MS, last * HOUR_MS],
        )
        try:
            for table in catalog.pass_tables(model):
                cursor.execute(f"create or replace temp table {table.name} as {table.sql}")
            rows += cursor.execute(f"insert into {model.qualified_name} {model.sql}").fetchall()[0][
                0
            ]
        except duckdb.Error as error:
            raise BuildError(f"{model.qualified_name} cannot be built: {error}") from error
    return rows


def _set_pass(cursor: duckdb.DuckDBPyConnection, first: int, last: int) -> None:
    """Say which hours the next selects are for: from `first` up to, not including, `last`."""
    cursor.execute(f"set variable build_from_ms = {first * HOUR_MS}")
    cursor.execute(f"set variable build_to_ms = {last * HOUR_MS}")


def _note_reading_spans(cursor: duckdb.DuckDBPyConnection, hours: Hours) -> None:
    """Widen each GPU's span of readings by those of these hours."""
    for first, last in _ranges(hours, len(hours)):
        _set_pass(cursor, first, last)
        cursor.execute(
            """create or replace temp table reading_spans as
            select gpu_uuid, min(first_ms) as first_ms, max(last_ms) as last_ms
            from (
                select gpu_uuid, to_ms(min(ts)) as first_ms, to_ms(max(ts)) as last_ms
                from raw.gpu_samples
                where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
                group by gpu_uuid
                union all
                select * from intermediate.int_gpu_reading_spans
            )
            group by gpu_uuid"""
        )
        cursor.execute("delete from intermediate.int_gpu_reading_spans")
        cursor.execute("insert into intermediate.int_gpu_reading_spans from reading_spans")


def _reading_hours(cursor: duckdb.DuckDBPyConnection, sequence: int | None) -> Hours:
    """Return the hours whose telemetry state may have changed since batch `sequence`.

    A reading covers back into the hour before its own, and makes the next hour's first one cover.
    """
    rows = cursor.execute(
        """select distinct
            unnest(range(
                to_ms(window_start_at) // 3600000 - 1, to_ms(window_end_at) // 3600000 + 2
            ))
        from raw.ingested
        where table_name in ('gpu_samples', 'gpu_processes') and window_start_at is not null
            and sequence > $1""",
        [-1 if sequence is None else sequence],
    ).fetchall()
    return {hour for (hour,) in rows}


def _hours_since_last_end(cursor: duckdb.DuckDBPyConnection) -> Hours:
    """Return the hours between each cluster's last end of evidence and the present one."""
    rows = cursor.execute(
        f"""select unnest(range(
            (least(coalesce(built.as_of_ms, clusters.first_ms), clusters.as_of_ms)
                - {IDLE_MARGIN_MS}) // {HOUR_MS},
            greatest(coalesce(built.as_of_ms, clusters.as_of_ms), clusters.as_of_ms)
                // {HOUR_MS} + 1
        ))
        from intermediate.int_clusters as clusters
        left join intermediate.built as built using (cluster)
        where built.as_of_ms is distinct from clusters.as_of_ms"""
    ).fetchall()
    return {hour for (hour,) in rows}


def _all_hours(cursor: duckdb.DuckDBPyConnection) -> Hours:
    rows = cursor.execute(
        f"""select distinct unnest(range(
            (select min(start_ms) from intermediate.int_gpu_units where units.cluster = cluster)
                // {HOUR_MS},
            as_of_ms // {HOUR_MS} + 1))
        from intermediate.int_clusters as units
        -- hours whose GPUs have left the inventory since are to be emptied
        union select distinct hour_ms // {HOUR_MS} from marts.ledger_hourly"""
    ).fetchall()
    return {hour for (hour,) in rows}


def _ranges(hours: Iterable[int], most: int) -> list[tuple[int, int]]:
    """Return hours as half-open ranges of at most `most` hours."""
    ranges: list[tuple[int, int]] = []
    for hour in sorted(hours):
        if ranges and ranges[-1][1] == hour and hour - ranges[-1][0] < most:
            ranges[-1] = (ranges[-1][0], hour + 1)
        else:
            ranges.append((hour, hour + 1))
    return ranges


class _timed:  # noqa: N801 -- reads as a phrase: with timed(...)
    """Note how long a stage took and how many rows it wrote."""

    rows = 0

    def __init__(self, timings: list[tuple[str, int, float]], stage: str) -> None:
        self.timings, self.stage = timings, stage

    def __enter__(self) -> _timed:
        self.started = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.timings.append((self.stage, self.rows, time.perf_counter() - self.started))


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)
