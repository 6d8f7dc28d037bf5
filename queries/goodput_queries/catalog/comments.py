"""Writes the headers of the SQL files as comments into the database, for any client."""

from collections.abc import Collection, Iterable

import duckdb

from goodput_queries.catalog.models import Model


def describe(cursor: duckdb.DuckDBPyConnection, model: Model) -> None:
    """Comment a table or view and its columns with the header of its file."""
    cursor.execute(f"from {model.qualified_name} limit 0")
    columns = {column[0] for column in cursor.description}
    cursor.execute(_comments(model, columns))


def describe_all(cursor: duckdb.DuckDBPyConnection, models: Iterable[Model]) -> None:
    """Do as `describe` for many: to ask each view for its columns would bind it once more."""
    columns = dict(
        cursor.execute(
            """select schema_name || '.' || table_name, list(column_name)
            from duckdb_columns()
            where database_name = current_database()
            group by all"""
        ).fetchall()
    )
    for model in models:
        cursor.execute(_comments(model, columns[model.qualified_name]))


def _comments(model: Model, columns: Collection[str]) -> str:
    kind = "table" if model.is_stored else "view"
    statements = [_comment(f"{kind} {model.qualified_name}", model.description)]
    statements += [
        _comment(f"column {model.qualified_name}.{column}", meaning)
        for column, meaning in model.columns.items()
        if column in columns  # a header line may describe several columns
    ]
    return "".join(statements)


def _comment(target: str, text: str) -> str:
    quoted = text.replace("'", "''")
    return f"comment on {target} is '{quoted}';\n"
