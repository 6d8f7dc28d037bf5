"""Writes the headers of the SQL files as comments into the database, for any client."""

from collections.abc import Iterable, Mapping

import duckdb

from goodput_queries.catalog.columns import meanings, unit_of
from goodput_queries.catalog.models import Model


def describe(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Comment a table or view and its columns: what they mean, in which unit."""
    found = cursor.execute(f"describe {model.qualified_name}").fetchall()
    cursor.execute(_comments(model, {name: kind for name, kind, *_ in found}))


def describe_all(cursor: duckdb.DuckDBPyConnection, models: Iterable[Model]) -> None:
    """Do as `describe` for many: to ask each view for its columns would bind it once more."""
    columns: dict[str, dict[str, str]] = {}
    for table, name, kind in cursor.execute(
        """select schema_name || '.' || table_name, column_name, data_type
        from duckdb_columns() where database_name = current_database()"""
    ).fetchall():
        columns.setdefault(table, {})[name] = kind
    for model in models:
        cursor.execute(_comments(model, columns[model.qualified_name]))


def _comments(model: Model, columns: Mapping[str, str]) -> str:
    """Return the statements; columns: their types by name."""
    kind = "table" if model.is_stored else "view"
    statements = [_comment(f"{kind} {model.qualified_name}", model.description)]
    for column, meaning in meanings(model.columns, columns).items():
        unit = unit_of(column, columns[column])
        text = meaning if unit is None or unit in meaning else f"{meaning} [{unit}]"
        statements.append(_comment(f"column {model.qualified_name}.{column}", text))
    return "".join(statements)


def _comment(target: str, text: str) -> str:
    quoted = text.replace("'", "''")
    return f"comment on {target} is '{quoted}';\n"
