"""The variables of a connection through which marts read the scope."""

from typing import Any

import duckdb

from goodput_queries.scope import Scope

HOUR_MS = 3_600_000


def set_on(cursor: duckdb.DuckDBPyConnection, scope: Scope) -> dict[str, Any]:
    """Set the DuckDB variables that the marts read, and return them; a fresh cursor has none.

    Of time whose segments were dropped by age only whole hours are known: a window that cuts one
    is widened to it.
    """
    variables = scope.variables()
    cuts = [m for m in (scope.from_ms, scope.to_ms) if m is not None and m % HOUR_MS]
    if cuts and min(cuts) < _segments_from_ms(cursor):
        if scope.from_ms is not None:
            variables["scope_from_ms"] = scope.from_ms // HOUR_MS * HOUR_MS
        if scope.to_ms is not None and scope.to_ms < _segments_from_ms(cursor):
            variables["scope_to_ms"] = -(-scope.to_ms // HOUR_MS) * HOUR_MS
    for name, value in variables.items():
        if isinstance(value, tuple):  # an empty list has no type of its own
            cursor.execute(f"set variable {name} = $1::varchar[]", [list(value)])
        elif value is not None:
            cursor.execute(f"set variable {name} = $1", [value])
    return variables


def _segments_from_ms(cursor: duckdb.DuckDBPyConnection) -> int:
    found = cursor.execute(
        "select min(hour_ms) from intermediate.int_ledger_segments "
        "where exists (from state.kept_from)"
    ).fetchall()
    return int(found[0][0] or 0)
