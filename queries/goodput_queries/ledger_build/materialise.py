"""Materialises the stages of the ledger: how the rows of each kind of stage are replaced.

full      rebuilt; small, run-length encoded
job_runs  rows of job runs whose raw record is new
run_ids   rows of the runs in temp.dirty_run_ids
runs      rows of the job runs in temp.dirty_job_runs, which are all of some runs
attempts  rows of the attempts in temp.dirty_attempts; computed in temp.<name>, which siblings read
hourly    rows of some hours, in passes of bounded size
merged    rows of new loads are upserted by the columns of the grain
compared  rebuilt; the previous rows are kept in a second table, so that code finds the differences
"""

from __future__ import annotations

import bisect
import sys
from typing import TYPE_CHECKING

import duckdb

from goodput_queries.catalog import models as sql_models
from goodput_queries.catalog.comments import describe
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build import dirty_gpus
from goodput_queries.ledger_build.dirty import (
    HOUR_MS,
    Hours,
    changed_hours,
    changed_rows,
    differ,
    note_reading_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from goodput_queries.catalog.models import Model

PASS_MAX_GPU_HOURS = 24_000  # bounds the memory of one pass of the ledger: about 1 GB
OF_THESE_HOURS = "hour_ms >= build_from_ms() and hour_ms < build_to_ms()"
OF_THESE_GPUS = f"""{OF_THESE_HOURS} and (
    hour_ms >= build_whole_from_ms() or gpu_uuid in (select gpu_uuid from temp.reopened_gpus))"""
KEYS = {
    "job_runs": """(
        job_run_key in (select job_run_key from temp.int_job_runs)
        -- a scheduler may have reported its time since
        or is_inferred
            and job_run_key not in (select job_run_key from staging.stg_owner_holds)
            and job_run_key not in (select job_run_key from staging.stg_inferred_holds))""",
    "run_ids": "(cluster, run_id) in (select (cluster, run_id) from temp.dirty_run_ids)",
    "runs": "job_run_key in (select job_run_key from temp.dirty_job_runs)",
    "attempts": "attempt_key in (select attempt_key from temp.dirty_attempts)",
}


def set_hours(
    cursor: duckdb.DuckDBPyConnection, first: int, last: int, whole_from: int | None = None
) -> None:
    """Set the hours of the next selects: from `first` up to, not including, `last`.

    whole_from: the hour before which they are for the GPUs in temp.reopened_gpus alone.
    """
    cursor.execute(f"set variable build_from_ms = {first * HOUR_MS}")
    cursor.execute(f"set variable build_to_ms = {last * HOUR_MS}")
    whole_from = first if whole_from is None else whole_from
    cursor.execute(f"set variable build_whole_from_ms = {whole_from * HOUR_MS}")


def run(cursor: duckdb.DuckDBPyConnection, model: Model, sql: str) -> int:
    """Run a statement of a stage; return the rows it wrote, raise BuildError naming the stage."""
    try:
        rows = cursor.execute(sql).fetchall()
    except duckdb.Error as error:
        raise BuildError(f"{model.qualified_name} cannot be built: {error}") from error
    return int(rows[0][0]) if rows else 0


def draft(cursor: duckdb.DuckDBPyConnection, model: Model, parts: int = 1) -> None:
    """Compute a stage's rows of this build as the temporary table, or view, of its name.

    What a transaction once wrote into a temporary table takes up memory to its end, so that what is
    wide and asked once, by the next stage, is a view.
    """
    kind = "view" if model.is_inline else "table"
    run(cursor, model, f"create or replace temp {kind} {model.name} as {model.select(parts)}")


def replace_all(
    cursor: duckdb.DuckDBPyConnection, model: Model, select: str, *, is_compared: bool
) -> tuple[Hours, bool, int]:
    """Rebuild a stage; return dirty hours, whether all hours depend on the differences, its rows.

    A stage that came out as it was stays, and nothing is written to the file.
    """
    if not is_compared:
        return set(), False, _put_in_place(cursor, model, select)
    name, new = model.qualified_name, f"temp.{model.name}"
    rows = run(cursor, model, f"create or replace temp table {model.name} as {select}")
    if not differ(cursor, f"from {new}", f"from {name}"):
        return set(), False, rows
    hours: Hours = set()
    if model.bounds:
        hours = changed_hours(cursor, f"from {new}", f"from {name}", model.bounds, model.reopens)
    is_other = model.directives.get("change_tracking") == "all"
    return hours, is_other, _put_in_place(cursor, model, f"from {new}")


def _put_in_place(cursor: duckdb.DuckDBPyConnection, model: Model, select: str) -> int:
    """Put a new table in the place of a stage; return its rows.

    A new table rather than new rows: the planner has its true size in the same transaction, and the
    file holds no dead ones.
    """
    name, new = model.qualified_name, f"{model.qualified_name}_next"
    rows = run(cursor, model, f"create or replace table {new} as {select}")
    cursor.execute(f"drop table {name}")
    cursor.execute(f"alter table {new} rename to {model.name}")
    describe(cursor, model)
    return rows


def merge(cursor: duckdb.DuckDBPyConnection, model: Model, *, is_full: bool) -> int:
    """Merge temp.<name> into a stage: of equal keys the earliest first_ms, the latest of others.

    Returns how many rows were drafted.
    """
    name, new = model.qualified_name, f"temp.{model.name}"
    keys = ", ".join(model.grain)
    columns = [c for c, *_ in cursor.execute(f"describe {name}").fetchall()]
    values = ", ".join(
        column if column in model.grain
        else f"{'min' if column == 'first_ms' else 'max'}({column}) as {column}"
        for column in columns
    )  # fmt: skip
    if is_full:
        cursor.execute(f"delete from {name}")
    else:
        cursor.execute(
            f"insert into {new} select old.* from {name} as old semi join {new} using ({keys})"
        )
        cursor.execute(f"delete from {name} where ({keys}) in (select ({keys}) from {new})")
    return run(cursor, model, f"insert into {name} select {values} from {new} group by {keys}")


def replace_keys(
    cursor: duckdb.DuckDBPyConnection, model: Model, kind: str, old: str, *, is_full: bool
) -> tuple[Hours, int]:
    """Replace the rows of the dirty keys, `old`, by those in temp.<name>."""
    name, new = model.qualified_name, f"temp.{model.name}"
    if is_full:
        _, _, rows = replace_all(cursor, model, f"from {new}", is_compared=False)
        return set(), rows
    hours: Hours = set()
    if model.bounds:
        hours = changed_hours(cursor, f"from {new}", old, model.bounds, model.reopens)
    cursor.execute(f"delete from {name} where {KEYS[kind]}")
    return hours, run(cursor, model, f"insert into {name} from {new}")


def replace_places(
    cursor: duckdb.DuckDBPyConnection, model: Model, whose: Sequence[str], *, is_compared: bool
) -> Hours:
    """Replace holds or their conflicts by temp.<name>: those of job runs in temp.placed_again.

    whose: the columns that name the job runs; none: all rows are replaced. Returns the hours that
    differ, and adds job runs whose holds moved to temp.changed_job_runs.
    """
    name, new = model.qualified_name, f"temp.{model.name}"
    old = f"from {name} as placed"
    if whose:
        # the earliest moment of all besides: zones are known for it
        earliest_ms = cursor.execute("select coalesce(min(ms), 0) from temp.places").fetchall()[0][
            0
        ]
        old += f""" where start_ms >= {earliest_ms} and exists (
            from temp.placed_again as again
            where again.cluster = placed.cluster and again.node = placed.node
                and again.job_run_key in ({", ".join(f"placed.{column}" for column in whose)}))"""
    cursor.execute(f"create or replace temp table before as {old}")
    hours: Hours = set()
    if is_compared and model.bounds:
        hours = changed_hours(
            cursor, f"from {new}", "from temp.before", model.bounds, model.reopens
        )
        cursor.execute(
            f"""insert into temp.changed_job_runs
            select distinct job_run_key
            from (
                (from {new} except from temp.before) union all (from temp.before except from {new})
            )"""
        )
    if whose:
        cursor.execute(f"delete {old}")
        cursor.execute(f"insert into {name} from {new}")
    else:
        replace_all(cursor, model, f"from {new}", is_compared=False)
    return hours


def replace_hours(
    cursor: duckdb.DuckDBPyConnection,
    models: Sequence[Model],
    whole: Hours,
    *,
    is_compared: bool,
    part: Hours | None = None,
    reopened_by: Iterable[str] = (),
) -> tuple[Hours, int]:
    """Replace hourly stages for these hours, pass by pass; return hours that differ and rows.

    Several stages share the temporary tables of a pass. Only a lone stage whose header says by what
    it dirties others is compared; of others all hours count as changed.

    part: the hours in which only the GPUs are replaced that the stages `reopened_by` reopened in
    them (temp.reopened).
    """
    rows = 0
    changed: Hours = set()
    tables = {t.name: t for model in models for t in sql_models.pass_tables(model)}
    found = passes(cursor, whole, part or set(), PASS_MAX_GPU_HOURS)
    for first, whole_from, last in found:
        set_hours(cursor, first, last, whole_from)
        where = OF_THESE_HOURS
        if first < whole_from:
            dirty_gpus.begin_pass(cursor, reopened_by, first, whole_from)
            where = OF_THESE_GPUS
        # rows by GPU that are compared for all GPUs would invalidate nearly every hour
        can_compare = models[0].bounds is not None or not models[0].is_by_gpu or first < whole_from
        is_compared_here = is_compared and models[0].is_compared and can_compare
        if not is_compared_here:
            changed |= set(range(first, last))
        for table in tables.values():
            parts = note_reading_parts(cursor, table.parts) if table.parts > 1 else 1
            draft(cursor, table, parts)
        for model in models:
            old = f"from {model.qualified_name} where {where}"
            if is_compared_here:
                draft(cursor, model)
                changed |= _changed(cursor, model, f"from temp.{model.name}", old)
            cursor.execute(f"delete {old}")
            select = f"from temp.{model.name}" if is_compared_here else model.sql
            rows += run(cursor, model, f"insert into {model.qualified_name} {select}")
    return changed, rows


def _changed(cursor: duckdb.DuckDBPyConnection, model: Model, new: str, old: str) -> Hours:
    if model.bounds:
        return changed_hours(cursor, new, old, model.bounds, model.reopens)
    return changed_rows(cursor, new, old)


def passes(
    cursor: duckdb.DuckDBPyConnection, whole: Hours, part: Hours, most_gpu_hours: int
) -> list[tuple[int, int, int]]:
    """Return hours as half-open ranges, each with at most that many GPU-hours, or of one hour.

    The hours of a range from the middle number on are whole, those before it are not: so what a job
    changed of the last hours goes with what came since.
    """
    hours = whole | part
    alone = {hour: (hour, hour if hour in whole else hour + 1, hour + 1) for hour in sorted(hours)}
    if not any(hour + 1 in hours for hour in hours):
        return list(alone.values())
    joins = dict(
        cursor.execute(
            f"""select hour, sum(units)
            from (
                select start_ms // {HOUR_MS} as hour, 1 as units from intermediate.int_gpu_units
                union all
                select end_ms // {HOUR_MS} + 1, -1
                from intermediate.int_gpu_units where end_ms is not null
            )
            group by hour"""
        ).fetchall()
    )
    units = 0
    present = [(hour, units := units + joins[hour]) for hour in sorted(joins)]
    found: list[tuple[int, int, int]] = []
    held = 0
    for hour, of_hour in alone.items():
        place = bisect.bisect_right(present, (hour, sys.maxsize)) - 1
        here = int(present[place][1]) if place >= 0 else 0
        first, whole_from, last = found[-1] if found else (hour, hour, -1)
        # a range that has come to whole hours takes no other
        if last == hour and held + here <= most_gpu_hours and (hour in whole or whole_from == last):
            found[-1] = (first, whole_from if hour in whole else hour + 1, hour + 1)
            held += here
        else:
            found.append(of_hour)
            held = here
    return found
