"""Views that are evaluated before the query that reads them, one after the other.

Findings read most of the other marts. As one statement that is a plan of thousands of operators,
which takes seconds to make even where there are no rows, and what several of them read is computed
for each. A view whose header says `evaluated: first`, or of marts `skip_if_empty`, becomes a
temporary table of the connection instead, and what reads it, reads that. A view without the header
that reads such a one becomes a temporary view, so that it reads that table too.
"""

from collections.abc import Container, Mapping
from functools import cache

import duckdb

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model

_columns_of: dict[str, str] = {}


def named_in(sql: str) -> list[Model]:
    """Return the views that a select needs evaluated first, in an order that finds its inputs.

    Among them are views without the header that read such views.
    """
    return _needed(frozenset(models.tables_read(sql)) & _evaluated())


def not_covered(sql: str, needed: list[Model], kept: Container[str]) -> list[Model]:
    """Return those of the needed views that have to be made where the rows of `kept` are known.

    What only kept views read is not among them.
    """
    asked = set(models.tables_read(sql))
    for model in reversed(needed):
        if model.qualified_name in asked and model.qualified_name not in kept:
            asked |= model.reads
    return [m for m in needed if m.qualified_name in asked and m.qualified_name not in kept]


def evaluate(cursor: duckdb.DuckDBPyConnection, sql: str, needed: list[Model]) -> str:
    """Evaluate these views for the scope of the cursor; return the select that reads the results.

    Raises duckdb.Error as the select itself would.
    """
    tables: dict[str, str] = {}
    for model in needed:
        tables[model.qualified_name] = as_temporary(cursor, model, tables)
    return reading(sql, tables)


def as_temporary(cursor: duckdb.DuckDBPyConnection, model: Model, tables: Mapping[str, str]) -> str:
    """Evaluate a view into a temporary table of the cursor; return its name.

    One without the header becomes a temporary view. tables: where the rows of evaluated views are,
    by the names of these.
    """
    if model.is_staged_view:
        create = f"table {model.name} {definition(cursor, model, tables)}"
    else:
        create = f"view {model.name} as {reading(model.sql, tables)}"
    cursor.execute(f"create or replace temp {create}")
    return f"{models.TEMP_LAYER}.{model.name}"


def definition(cursor: duckdb.DuckDBPyConnection, model: Model, tables: Mapping[str, str]) -> str:
    """Return what follows the name of a table that is to have the rows of a view.

    Where none of the tables in its header `skip_if_empty` has rows, these are its columns alone:
    most of the time of a view without rows goes into its plan.
    """
    if model.sources and not any(_has_rows(cursor, tables.get(n, n)) for n in model.sources):
        return f"({_columns(cursor, model)})"
    return f"as {reading(model.sql, tables)}"


def _has_rows(cursor: duckdb.DuckDBPyConnection, table: str) -> bool:
    return bool(cursor.execute(f"select 1 from {table} limit 1").fetchall())


def _columns(cursor: duckdb.DuckDBPyConnection, model: Model) -> str:
    """Return the columns of a view with their types, which are the same in every database."""
    if model.qualified_name not in _columns_of:
        rows = cursor.execute(
            """select column_name, data_type from duckdb_columns()
            where database_name = current_database() and schema_name = $1 and table_name = $2
            order by column_index""",
            [model.layer, model.name],
        ).fetchall()
        _columns_of[model.qualified_name] = ", ".join(f'"{name}" {kind}' for name, kind in rows)
    return _columns_of[model.qualified_name]


def reading(sql: str, tables: Mapping[str, str]) -> str:
    """Return the select with evaluated views replaced by the tables that have their rows."""
    return models.REFERENCE.sub(lambda found: tables.get(found[0], found[0]), sql)


@cache
def _evaluated() -> frozenset[str]:
    """Return the views with the header and those that read one."""
    order = models.build_order()
    marked = {m.qualified_name for m in order if m.is_staged_view}
    readers = (m for m in order if not m.is_stored and not marked.isdisjoint(models.inputs(m)))
    return frozenset(marked | {m.qualified_name for m in readers})


@cache
def _needed(names: frozenset[str]) -> list[Model]:
    order = models.build_order()
    found = set(names)
    for model in order:
        if model.qualified_name in names:
            found |= models.inputs(model) & _evaluated()
    return [m for m in order if m.qualified_name in found]
