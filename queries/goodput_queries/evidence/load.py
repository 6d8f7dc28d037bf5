"""Loads a batch into its raw table: upserts rows by key and stores its rejects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import polars as pl

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.errors import StoreError
from goodput_queries.evidence.batch import CONTENT_CHARS, Batch, Loaded, rows_of_rejects
from goodput_queries.storage.row_groups import ROW_GROUP

REPLACE = "replace"  # `keep: replace` in a table's header: what came last holds
RANGED = frozenset({"BIGINT", "INTEGER", "TIMESTAMP"})  # key types that zone maps know well
BEGIN, END = "valid_from_at", "valid_to_at"  # of tables with `scd_key` in their header
SEQUENCE = "load_sequence"  # which load wrote a row: what is new, what goes when forgotten


def prepared(batch: Batch) -> Batch:
    """Return the batch with its rows rechunked: a prefetching reader does it in its own thread."""
    return replace(batch, rows=_in_large_pieces(batch.rows))


def _in_large_pieces(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows in one chunk, or in chunks of whole row groups.

    DuckDB writes a chunk that fills no row group twice: by itself, and again when it is merged.
    """
    pieces = max((column.chunk_lengths() for column in rows), key=len, default=[])
    return rows if all(size % ROW_GROUP == 0 for size in pieces[:-1]) else rows.rechunk()


def load(cursor: duckdb.DuckDBPyConnection, model: Model, batch: Batch) -> Loaded:
    """Write a batch inside the caller's transaction; a part that was loaded before is skipped.

    A table whose latest rows hold (a rate card) takes a repeated part again: it may have been
    replaced in between.
    """
    key = [batch.source, batch.digest, batch.table]
    sequence, is_repeat, is_read_otherwise = cursor.execute(
        """select
            coalesce(max(sequence), 0) + 1,
            count(*) filter (where digest = $2 and source = $1 and table_name = $3) > 0,
            count(*) filter (where origin = $4 and starts_with(digest, $5) and source = $1) > 0
        from state.ingested""",
        [*key, batch.origin, batch.digest[: CONTENT_CHARS + 1]],
    ).fetchall()[0]
    if is_repeat and model.keep != REPLACE:
        return Loaded(batch.rows.height, 0, len(batch.rejects), is_repeat=True)
    rows_new = insert_keyed(cursor, model, batch.rows, sequence)
    rejects_new = _insert_rejects(cursor, batch, sequence)
    if is_repeat:
        cursor.execute(
            "delete from state.ingested where (source, digest, table_name) = ($1, $2, $3)", key
        )
    differing, differs_from = 0, ""
    if rows_new < batch.rows.height and model.keep is None and not model.versions_of:
        differing, differs_from = _differing(cursor, model, batch.rows)
    is_read_otherwise = is_read_otherwise and batch.digest[CONTENT_CHARS:].startswith("-")
    is_known = is_read_otherwise and not rows_new and _are_there(cursor, model, batch.rows)
    start, end = _window(model, batch.rows)
    cursor.execute(
        """insert into state.ingested
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, get_current_timestamp()::timestamp)""",
        [sequence, batch.source, batch.origin, batch.digest, batch.table, batch.rows.height,
         rows_new, rejects_new, start, end],
    )  # fmt: skip
    return Loaded(
        batch.rows.height,
        rows_new,
        len(batch.rejects),
        is_repeat=is_repeat,
        is_read_otherwise=is_read_otherwise,
        is_known=is_known,
        differing=differing,
        differs_from=differs_from,
    )


def _differing(
    cursor: duckdb.DuckDBPyConnection, model: Model, rows: pl.DataFrame
) -> tuple[int, str]:
    """Return how many rows measure another value than the table has by their key, and its origin.

    Two endpoints, or nodes, that nothing distinguishes.
    """
    values = [
        name for name, kind in rows.schema.items() if kind.is_float() and name not in model.grain
    ]
    if not values:
        return 0, ""
    differs = " or ".join(f"old.{name} <> new.{name}" for name in values)
    found = _of_known_keys(
        cursor, model, rows, f"count(*) filter ({differs}), min(origin) filter ({differs})"
    )
    return int(found[0]), found[1] or ""


def _are_there(cursor: duckdb.DuckDBPyConnection, model: Model, rows: pl.DataFrame) -> bool:
    """Say whether the table has the rows of a batch with all that they say."""
    if rows.is_empty() or model.versions_of:
        return True
    others = [name for name in rows.columns if name not in model.grain]
    says = " and ".join(f"old.{name} is not distinct from new.{name}" for name in others)
    (found,) = _of_known_keys(cursor, model, rows, f"count(*) filter ({says or 'true'})")
    return bool(found == rows.height)


def _of_known_keys(
    cursor: duckdb.DuckDBPyConnection, model: Model, rows: pl.DataFrame, wanted: str
) -> tuple[Any, ...]:
    """Return aggregates of rows (`new`) and those of their keys in the table (`old`)."""
    cursor.register("incoming_frame", rows.to_arrow(compat_level=pl.CompatLevel.newest()))
    lacks = "".join(f", null as {name}" for name in model.grain if name not in rows.columns)
    near = [moment for moment in _window(model, rows) if moment is not None]  # for zone maps
    found = cursor.execute(
        f"""select {wanted}
        from (select *{lacks} from incoming_frame) new
        inner join (
            from {model.qualified_name}
            where {f"{model.time} between $1 and $2" if near else "true"}
        ) old on {_same_key(model)}
        left join state.ingested on ingested.sequence = old.load_sequence""",
        near,
    ).fetchall()[0]
    cursor.unregister("incoming_frame")
    return found


def insert_keyed(
    cursor: duckdb.DuckDBPyConnection, model: Model, rows: pl.DataFrame, sequence: int
) -> int:
    """Insert rows by the table's key as load `sequence`; return how many are new.

    Of rows with one key the first loaded stays, or the better one by the header's `keep`. Batches
    whose keys are all new, the usual case, go in without a join.
    """
    if rows.is_empty():
        return 0
    table = model.qualified_name
    columns: dict[str, str] = dict(
        cursor.execute(f"select column_name, column_type from (describe {table})").fetchall()
    )
    if unknown := rows.columns - columns.keys():
        raise StoreError(f"{table} has no column {min(unknown)!r}")
    values = ", ".join(
        f"{_value(name, rows.columns, sequence)}::{kind} as {name}"
        for name, kind in columns.items()
    )
    in_pieces = _in_large_pieces(rows)
    cursor.register("incoming_frame", in_pieces.to_arrow(compat_level=pl.CompatLevel.newest()))
    incoming = f"(select {values} from incoming_frame)"
    if model.versions_of:
        changed = _drop_unchanged_facts(model, incoming, list(columns))
        cursor.execute(f"create or replace temp table changed_facts as {changed}")
        incoming = "(from temp.changed_facts)"
    repeats, near = _keys(cursor, model, incoming, columns)
    if not repeats and not _is_known(cursor, model, incoming, near):
        rows_new = _changed(cursor, f"insert into {table} select * from {incoming}")
    else:
        rows_new = _merge(cursor, model, incoming, list(columns), near, repeats=repeats)
    cursor.unregister("incoming_frame")  # after a failure the cursor goes, and takes it along
    return rows_new


def _drop_unchanged_facts(model: Model, incoming: str, columns: Sequence[str]) -> str:
    """Return the select of the incoming rows without those that repeat the current version.

    The table is a slowly changing dimension by its header (`versions of`): a version is valid from
    its start until the next one. A later row with the same facts, as each restarted collector
    sends, adds no version. A thing of several rows (the instances of a GPU) is compared as a whole;
    a null fact matches any value.
    """
    thing = model.versions_of
    part = [name for name in model.grain if name not in {*thing, BEGIN}]
    facts = [name for name in columns if name not in {*model.grain, END, SEQUENCE}]
    of, moment = ", ".join(thing), ", ".join([*thing, BEGIN])

    def same(names: Sequence[str], one: str, other: str) -> str:
        return " and ".join(f"{one}.{n} is not distinct from {other}.{n}" for n in names)

    says_no_more = " and ".join(f"(new.{n} is null or new.{n} = old.{n})" for n in facts)
    return f"""with
        incoming as (from {incoming}),
        versions as (
            select *, false as is_known from incoming
            union all
            select old.*, true
            from {model.qualified_name} as old
            semi join incoming as new on {same(thing, "old", "new")}
        ),
        moments as (
            select {moment}, count(*) as parts, bool_or(is_known) as is_known,
                count({END}) = 0 as is_open
            from versions group by {moment}
        ),
        turns as (
            select *, lag({BEGIN}) over w as before_at, lag(parts) over w as parts_before,
                lag(is_open) over w as was_open
            from moments window w as (partition by {of} order by {BEGIN} nulls first)
        ),
        repeated as (
            select turns.*
            from turns
            inner join incoming as new on {same([*thing, BEGIN], "turns", "new")}
            inner join versions as old
                on {same([*thing, *part], "old", "new")}
                and old.{BEGIN} is not distinct from turns.before_at
                and {says_no_more}
            where not turns.is_known and turns.is_open and turns.was_open
                and turns.parts = turns.parts_before
            group by all
            having count(*) = turns.parts
        )
        select new.* from incoming as new anti join repeated as old
            on {same([*thing, BEGIN], "old", "new")}"""


@dataclass(frozen=True)
class _Near:
    """Rows of the table, called `old`, that may have a key of the batch; with its parameters."""

    condition: str
    parameters: list[str]


def _keys(
    cursor: duckdb.DuckDBPyConnection,
    model: Model,
    incoming: str,
    columns: Mapping[str, str],
) -> tuple[bool, _Near]:
    """Return whether a key may repeat in the batch, and the range of the table that may hold it.

    A hash collision counts as a repetition; the merge then compares the keys themselves. Zone maps
    find the range without a scan, since evidence mostly arrives in order.
    """
    ranged = [name for name in model.grain if columns[name] in RANGED]
    ends = "".join(
        f", count({name}), min({name})::varchar, max({name})::varchar" for name in ranged
    )
    count, distinct, *found = cursor.execute(
        f"select count(*), count(distinct hash({', '.join(model.grain)})){ends} from {incoming}"
    ).fetchall()[0]
    conditions, parameters = ["true"], list[str]()
    for number, name in enumerate(ranged):
        not_null, *least_and_greatest = found[3 * number : 3 * number + 3]
        if not_null and not_null == count:  # nulls are keys too, and in no range
            low, high = (f"${len(parameters) + n}::{columns[name]}" for n in (1, 2))
            conditions.append(f"old.{name} between {low} and {high}")
            parameters += least_and_greatest
    return distinct < count, _Near(" and ".join(conditions), parameters)


def _is_known(cursor: duckdb.DuckDBPyConnection, model: Model, incoming: str, near: _Near) -> bool:
    """Say whether the table has a key of the batch."""
    old = f"from {model.qualified_name} old where {near.condition}"
    if not cursor.execute(f"select 1 {old} limit 1", near.parameters).fetchall():
        return False
    known = f"""select 1 from (select {", ".join(model.grain)} {old}) old
        semi join {incoming} new on {_same_key(model)} limit 1"""
    return bool(cursor.execute(known, near.parameters).fetchall())


def _merge(
    cursor: duckdb.DuckDBPyConnection,
    model: Model,
    incoming: str,
    columns: Sequence[str],
    near: _Near,
    *,
    repeats: bool,
) -> int:
    """Upsert: write rows whose key is new, or that win over the stored row of their key.

    The winner among rows of one key does not depend on their order. Returns how many keys are
    new. repeats: whether keys may repeat in the batch.
    """
    table, keep = model.qualified_name, model.keep
    old = f"(select * from {table} old where {near.condition}) old"
    keys, same = ", ".join(model.grain), _same_key(model)
    content = f"({', '.join(c for c in columns if c != SEQUENCE)})"
    better = (
        ""
        if keep in {None, REPLACE}
        else "".join(f"{term.strip()} desc nulls last, " for term in keep.split(","))
    )
    # of a few rows with many columns DuckDB finds the first of a group sooner than a window's
    once = f"""select unnest(first(candidate order by {better}{content} desc))
        from {incoming} candidate group by {keys}"""
    # filled as it is made: DuckDB 2.0.0 loses what is inserted into a table that was created empty
    # by a select in the same transaction, from 122,880 rows on
    cursor.execute(
        f"create or replace temp table incoming_rows as {once if repeats else f'from {incoming}'}"
    )
    if keep is None:
        rows_new = _changed(
            cursor,
            f"""insert into {table}
            select new.* from incoming_rows new anti join {old} on {same}""",
            near.parameters,
        )
    else:
        if keep == REPLACE:
            cursor.execute("create or replace temp table best_rows as from incoming_rows")
        else:
            cursor.execute(
                f"""create or replace temp table best_rows as
                with candidates as (
                    select *, false as is_old from incoming_rows
                    union all
                    select old.*, true from {old} semi join incoming_rows new on {same}
                ),
                kept as (
                    select first(candidates order by {better}{content} desc, is_old desc) as best
                    from candidates group by {keys}
                )
                select * exclude (is_old) from (select unnest(best) from kept where not best.is_old)
                """,
                near.parameters,
            )
        rows_replaced = _changed(
            cursor,
            f"""delete from {table} old where {near.condition}
                and exists (select 1 from best_rows new where {same})""",
            near.parameters,
        )
        rows_new = _changed(cursor, f"insert into {table} select * from best_rows") - rows_replaced
        cursor.execute("drop table best_rows")
    cursor.execute("drop table incoming_rows")
    return rows_new


def _changed(
    cursor: duckdb.DuckDBPyConnection, statement: str, parameters: Sequence[str] = ()
) -> int:
    """Execute an insert or a delete; return the number of rows it changed."""
    return int(cursor.execute(statement, list(parameters)).fetchall()[0][0])


def _same_key(model: Model) -> str:
    return " and ".join(f"old.{k} is not distinct from new.{k}" for k in model.grain)


def _value(column: str, given: Sequence[str], sequence: int) -> str:
    if column == SEQUENCE:
        return str(sequence)
    return column if column in given else "null"


def _insert_rejects(cursor: duckdb.DuckDBPyConnection, batch: Batch, sequence: int) -> int:
    """Store the rejects of a batch; return how many are new."""
    if not batch.rejects:
        return 0
    return insert_keyed(cursor, models.base_tables()["rejects"], rows_of_rejects(batch), sequence)


def _window(model: Model, rows: pl.DataFrame) -> tuple[Any, Any]:
    """Return the first and last time in the rows, or two nulls."""
    column = model.time
    if column is None or rows.is_empty():
        return None, None
    return rows[column].min(), rows[column].max()
