"""What a reader may read who sees the rows of some teams only; everything else is refused.

Views whose header says `access: team` have no row of another team in a scope with `teams`; those
with `access: everyone`, and the reference tables, name nobody's work. The statement is parsed by
DuckDB itself, so that quoted names, subqueries, common table expressions and functions that read
are found wherever they stand.
"""

import json
from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

import duckdb

from goodput_queries.catalog.find import catalogue
from goodput_queries.errors import NotPermittedError

LIMITED = "You see the rows of your teams only"
_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_SOURCES = {"EMPTY", "JOIN", "SUBQUERY", "EXPRESSION_LIST", "PIVOT"}
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest"}
# These read something else than their arguments. `stats` has the bounds of a column's stored
# values, rows of other teams included.
_REFUSED_FUNCTIONS = frozenset(
    {
        "current_query", "current_setting", "currval", "get_block_size", "getenv", "getvariable",
        "nextval", "pg_get_constraintdef", "pg_get_viewdef", "setval", "sleep_ms", "stats",
        "write_log",
    }
)  # fmt: skip


@cache
def readable() -> frozenset[str]:
    """Return the qualified names of what every reader may read."""
    return frozenset(name for name, model in catalogue().items() if model.access is not None)


def refuse_others(cursor: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Raise NotPermittedError where a select reads anything that is not for every reader."""
    found = cursor.execute("select json_serialize_sql($1::varchar)", [sql]).fetchall()
    parsed = json.loads(found[0][0])
    if parsed.get("error"):
        said = parsed.get("error_message", "")
        raise NotPermittedError(f"{LIMITED}; this statement cannot be checked: {said}")
    for statement in parsed["statements"]:
        for name in _refused(statement["node"], frozenset()):
            raise NotPermittedError(f"{LIMITED}; {name} holds more than these.")


def message(error: duckdb.Error) -> str:
    """Return what a limited reader learns of an error.

    Errors of execution name values; a filter may meet rows that the view drops after it.
    """
    is_of_text = isinstance(
        error, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
    )
    return str(error) if is_of_text else "a value does not fit an expression of it."


def _refused(part: Any, visible: frozenset[str]) -> Iterator[str]:
    """Yield what is not permitted in a part of a statement.

    visible: names of common table expressions that hide tables there.
    """
    if isinstance(part, list):
        for item in part:
            yield from _refused(item, visible)
    if not isinstance(part, dict):
        return
    kind = part.get("type")
    if "class" in part:
        if part["class"] == "FUNCTION" and _called(part) in _REFUSED_FUNCTIONS:
            yield f"function {_called(part)}"
    elif "cte_map" in part:
        if kind not in _NODES:
            yield f"a query of kind {kind}"
        visible = yield from _of_ctes(part, visible)
    elif "sample" in part:
        yield from _of_source(part, visible)
    for key, value in part.items():
        if key == "function" and kind == "TABLE_FUNCTION":
            yield from _refused(value.get("arguments"), visible)
        elif key != "cte_map":
            yield from _refused(value, visible)


def _of_ctes(node: dict[str, Any], visible: frozenset[str]) -> Generator[str, None, frozenset[str]]:
    """Yield what is not permitted of the common table expressions; return what is visible then."""
    for entry in node["cte_map"]["map"]:
        inner = entry["value"]["query_node"]
        name = entry["key"].lower()
        is_recursive = inner["type"] == "RECURSIVE_CTE_NODE"
        yield from _refused(entry["value"], visible | {name} if is_recursive else visible)
        visible |= {name}
    return visible


def _of_source(source: dict[str, Any], visible: frozenset[str]) -> Iterator[str]:
    """Yield what is not permitted of one table, function or subquery after `from`."""
    kind = source["type"]
    if kind == "BASE_TABLE":
        path = [name.lower() for name in source["qualified_name"]["path"]]
        if ".".join(path) not in readable() and not (len(path) == 1 and path[0] in visible):
            yield ".".join(path)
    elif kind == "TABLE_FUNCTION":
        if _called(source["function"]) not in _TABLE_FUNCTIONS:
            yield f"function {_called(source['function'])}"
    elif kind not in _SOURCES:
        yield f"a source of kind {kind}"


def _called(function: dict[str, Any]) -> str:
    return str(function["qualified_name"]["path"][-1]).lower()
