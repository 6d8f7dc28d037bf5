"""Materialises the stages of the ledger: how the rows of each kind of stage are replaced.

full      rebuilt; small, run-length encoded
job_runs  rows of job runs whose raw record is new
run_ids   rows of the runs in temp.dirty_run_ids
runs      rows of the job runs in temp.dirty_job_runs, which are all of some runs
attempts  rows of their attempts; computed in temp.<name>, which siblings read
hourly    rows of some hours, in passes of bounded size
merged    rows of new loads are upserted by the columns of the grain

What of a stage is dirty, `dirty.close` says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import duckdb

from goodput_queries.catalog import models as sql_models
from goodput_queries.catalog.comments import describe
from goodput_queries.catalog.models import Model
from goodput_queries.errors import BuildError
from goodput_queries.ledger_build.differences import (
    changed_hours,
    changed_rows,
    differ,
    differences,
)
from goodput_queries.ledger_build.dirty import Change
from goodput_queries.ledger_build.dirty_hours import (
    EVERY,
    HOUR_MS,
    NOTHING,
    DirtyHours,
)
from goodput_queries.ledger_build.passes import note_reading_parts, passes

PASS_MAX_GPU_HOURS = 24_000  # bounds the memory of a pass over readings on two threads: 1 GB
# stages of the ledger have fewer rows; smaller passes leave cores idle between their statements
LEDGER_PASS_MAX_GPU_HOURS = 96_000
FEW_ROWS = 1000  # they are replaced in the table that is there
OF_THESE_HOURS = "hour_ms >= build_from_ms() and hour_ms < build_to_ms()"
KEYS = {
    "job_runs": """(
        job_run_key in (select job_run_key from temp.int_job_runs)
        -- a scheduler may have reported its time since
        or is_inferred
            and job_run_key not in (select job_run_key from staging.stg_owner_holds)
            and job_run_key not in (select job_run_key from staging.stg_inferred_holds))""",
    "run_ids": "(cluster, run_id) in (select (cluster, run_id) from temp.dirty_run_ids)",
    "runs": "job_run_key in (select job_run_key from temp.dirty_job_runs)",
    "attempts": """attempt_key in (
        select attempt_key from temp.int_attempts
        union all
        select attempt_key from temp.attempts_before
    )""",
    # claims, holds and conflicts of nodes that are placed again, since their times
    "placed": """
        stored.end_ms is null and (cluster, node) in (select (cluster, node) from temp.dirty_nodes)
        -- the earliest time of all as well: zone maps then exclude most rows
        or stored.end_ms >= (select min(since_ms) from temp.dirty_nodes) and exists (
            from temp.dirty_nodes as nodes
            where nodes.cluster = stored.cluster and nodes.node = stored.node
                and stored.end_ms >= nodes.since_ms)""",
}


def set_hours(cursor: duckdb.DuckDBPyConnection, first: int, last: int) -> None:
    """Set the hours of the next selects: from `first` up to, not including, `last`."""
    cursor.execute(f"set variable build_from_ms = {first * HOUR_MS}")
    cursor.execute(f"set variable build_to_ms = {last * HOUR_MS}")


def run(cursor: duckdb.DuckDBPyConnection, model: Model, sql: str) -> int:
    """Run a statement of a stage; return the rows it wrote, raise BuildError naming the stage."""
    try:
        rows = cursor.execute(sql).fetchall()
    except duckdb.Error as error:
        raise BuildError(f"{model.qualified_name} cannot be built: {error}") from error
    return int(rows[0][0]) if rows else 0


# columns of temporary stages that may be skipped, by name, as a build of this process made them
_columns: dict[str, str] = {}


def draft(cursor: duckdb.DuckDBPyConnection, model: Model, parts: int = 1) -> None:
    """Compute a stage's rows of this build as the temporary table, or view, of its name.

    What a transaction once wrote into a temporary table takes up memory to its end, so that what is
    wide and asked once, by the next stage, is a view.
    """
    kind = "view" if model.is_inline else "table"
    run(cursor, model, f"create or replace temp {kind} {model.name} as {model.select(parts)}")
    if model.sources and model.layer == sql_models.TEMP_LAYER and model.name not in _columns:
        columns = cursor.execute(f"describe temp.{model.name}").fetchall()
        _columns[model.name] = ", ".join(f"{name} {type_}" for name, type_, *_ in columns)


def draft_empty(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Draft a stage of which it is known that it has no rows: planning its select takes long."""
    if model.layer != sql_models.TEMP_LAYER:
        cursor.execute(
            f"create or replace temp table {model.name} as from {model.qualified_name} limit 0"
        )
    elif model.name in _columns:
        cursor.execute(f"create or replace temp table {model.name} ({_columns[model.name]})")
    else:
        draft(cursor, model)


def draft_pass(cursor: duckdb.DuckDBPyConnection, tables: Iterable[Model]) -> None:
    """Draft the temporary tables of a pass, in their order; its hours are set."""
    for table in tables:
        if table.sources and not has_rows(cursor, table.sources):
            draft_empty(cursor, table)
            continue
        parts = note_reading_parts(cursor, table.parts) if table.parts > 1 else 1
        draft(cursor, table, parts)


def has_rows(cursor: duckdb.DuckDBPyConnection, sources: Sequence[str]) -> bool:
    """Say whether one of these tables has a row; each may have a condition behind its name."""
    each = " union all ".join(f"(select 1 from {source} limit 1)" for source in sources)
    return bool(cursor.execute(f"{each} limit 1").fetchall())


def replace_all(cursor: duckdb.DuckDBPyConnection, model: Model, *, is_compared: bool) -> Change:
    """Rebuild a stage; one that came out as it was stays, and nothing is written to the file.

    The keys that differ, where they are tracked, are written to their temporary table.
    """
    old, new = f"from {model.qualified_name}", f"from temp.{model.name}"
    draft(cursor, model)
    if is_compared and not differ(cursor, new, old):
        return Change(is_none=True)
    hours = EVERY if model.is_compared_as_a_whole else NOTHING
    if is_compared and model.bounds:
        hours = changed_hours(cursor, new, old, model.bounds)
    if model.tracked_key:
        table = f"temp.changed_{model.name.partition('_')[2]}"
        differing = differences(new, old) if is_compared else new
        keys = f"select distinct {model.tracked_key} from ({differing})"
        cursor.execute(f"insert into {table} {keys}")
    return Change(_put_in_place(cursor, model), hours)


def _put_in_place(cursor: duckdb.DuckDBPyConnection, model: Model) -> int:
    """Put the rows of temp.<name> in the place of those of a stage; return how many they are.

    Of many rows a new table takes the place of the old one: the planner has its true size in the
    same transaction, and the file holds no dead rows. Of few rows, that takes longer.
    """
    name, new = model.qualified_name, f"{model.qualified_name}_next"
    select = f"from temp.{model.name}"
    counts = f"select greatest((select count(*) {select}), (select count(*) from {name}))"
    if cursor.execute(counts).fetchall()[0][0] <= FEW_ROWS:
        cursor.execute(f"delete from {name}")
        return run(cursor, model, f"insert into {name} {select}")
    rows = run(cursor, model, f"create or replace table {new} as {select}")
    cursor.execute(f"drop table {name}")
    cursor.execute(f"alter table {new} rename to {model.name}")
    describe(cursor, model)
    return rows


def merge(cursor: duckdb.DuckDBPyConnection, model: Model, *, is_full: bool) -> Change:
    """Merge temp.<name> into a stage: of equal keys the earliest of first_*, the latest of others.

    The rows of the change are those that were drafted.
    """
    name, new = model.qualified_name, f"temp.{model.name}"
    keys = ", ".join(model.grain)
    columns = [c for c, *_ in cursor.execute(f"describe {name}").fetchall()]
    values = ", ".join(
        column if column in model.grain
        else f"{'min' if column.startswith('first_') else 'max'}({column}) as {column}"
        for column in columns
    )  # fmt: skip
    if is_full:
        cursor.execute(f"delete from {name}")
    else:
        cursor.execute(
            f"insert into {new} select old.* from {name} as old semi join {new} using ({keys})"
        )
        cursor.execute(f"delete from {name} where ({keys}) in (select ({keys}) from {new})")
    sql = f"insert into {name} select {values} from {new} group by {keys}"
    return Change(run(cursor, model, sql))


def replace_rows(
    cursor: duckdb.DuckDBPyConnection, model: Model, where: str | None, *, is_compared: bool
) -> Change:
    """Replace the rows of a condition, None: all, by those in temp.<name>.

    Where it is compared temp.before has the rows that were there.
    """
    name, new = model.qualified_name, f"temp.{model.name}"
    old = f"from {name} as stored" + (f" where {where}" if where else "")
    hours = NOTHING
    if is_compared and model.bounds:
        cursor.execute(f"create or replace temp table before as {old}")
        hours = changed_hours(cursor, f"from {new}", "from temp.before", model.bounds)
    if where is None:
        return Change(_put_in_place(cursor, model), hours)
    cursor.execute(f"delete {old}")
    return Change(run(cursor, model, f"insert into {name} from {new}"), hours)


def replace_hours(
    cursor: duckdb.DuckDBPyConnection,
    models: Sequence[Model],
    dirty: DirtyHours,
    *,
    is_compared: bool,
    given: Mapping[str, str] | None = None,
) -> tuple[DirtyHours, int]:
    """Replace hourly stages in these hours, pass by pass; return where they differ, and their rows.

    Several stages share the temporary tables of a pass. Only a lone stage that tracks its changes
    is compared; others count as changed wherever they are replaced.

    given: selects of temporary tables that were computed elsewhere, by name.
    """
    rows = 0
    changed = NOTHING
    tables = {t.name: t for model in models for t in sql_models.pass_tables(model)}
    tables |= {n: replace(tables[n], sql=sql) for n, sql in (given or {}).items()}
    is_compared &= models[0].is_compared
    most = LEDGER_PASS_MAX_GPU_HOURS if models[0].is_of_ledger else PASS_MAX_GPU_HOURS
    for first, last in passes(cursor, dirty.hours, most):
        set_hours(cursor, first, last)
        if not is_compared:
            changed |= dirty.within(range(first, last))
        draft_pass(cursor, tables.values())
        for model in models:
            old = f"from {model.qualified_name} where {OF_THESE_HOURS}"
            if is_compared:
                draft(cursor, model)
                new = f"from temp.{model.name}"
                changed |= (
                    changed_hours(cursor, new, old, model.bounds)
                    if model.bounds
                    else changed_rows(cursor, new, old)
                )
            cursor.execute(f"delete {old}")
            select = f"from temp.{model.name}" if is_compared else model.sql
            rows += run(cursor, model, f"insert into {model.qualified_name} {select}")
    return changed, rows
