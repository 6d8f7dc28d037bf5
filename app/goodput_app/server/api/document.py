"""The OpenAPI document of `/api/v1`; a test compares its paths and fields with the routes."""

from typing import Any

from goodput_app.distribution import version
from goodput_app.sql_access.formats import MEDIA_TYPES

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
FLAG = {"type": "boolean"}
TEXT_OR_NULL = {"type": ["string", "null"]}
SCOPE = {
    "from": "Begin of the time range, inclusive: 2026-11-20T14:00Z, 2026-11-20, now-6h or now/d. "
    "Without it: from the first evidence on.",
    "to": "End of the time range, exclusive; written like `from`.",
    "cluster": "Only this cluster.",
    "team": "Only this team; it widens nothing for who sees some teams only.",
}
FORMAT: dict[str, Any] = {
    "type": "string",
    "enum": list(MEDIA_TYPES),
    "description": "Format of the answer; without it the Accept header decides, then it is json.",
}
LIMIT: dict[str, Any] = {
    "type": "integer",
    "minimum": 1,
    "description": "Largest number of rows; at most `rows_max` of [query] in goodput.toml, "
    "which is the default. `is_truncated` and X-Goodput-Truncated say whether there were more.",
}
ERRORS = {
    "400": "The request or its SQL cannot be answered as asked, or took too long or too much.",
    "401": "Nobody is signed in, or the token is unknown or has expired.",
    "403": "It holds rows of other teams than those of the person or token.",
    "404": "There is no view or saved query of that name for the person or token.",
    "413": "The request is too long.",
    "429": "Too many queries run already; Retry-After says when to try again.",
    "503": "The database does not answer.",
}


def openapi() -> dict[str, Any]:
    """Return the document."""
    rows = _rows_response()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Goodput",
            "version": version(),
            "description": "Read-only views of GPU time, its cost and its losses, and SQL on them. "
            "Rows are those that the person or the token may see.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": {
            "/api/v1/openapi.json": {
                "get": {
                    **_operation("openapi", "This document", _json({"type": "object"})),
                    "security": [],
                }
            },
            "/api/v1/views": {
                "get": _operation("views", "Views, their columns, meanings and units", _of("Views"))
            },
            "/api/v1/views/{view}/rows": {
                "get": _operation(
                    "rowsOfView",
                    "Rows of a view",
                    rows,
                    [_in_path("view", "marts.runs"), *_scope()],
                )
            },
            "/api/v1/query": {
                "post": {
                    **_operation("query", "Rows of one select", rows, more=("413",)),
                    "requestBody": {"required": True, **_of("Query")},
                }
            },
            "/api/v1/queries": {"get": _operation("queries", "Saved queries", _of("Queries"))},
            "/api/v1/queries/{key}/rows": {
                "get": _operation(
                    "rowsOfQuery",
                    "Rows of a saved query",
                    rows,
                    [_in_path("key", "most_wasted_runs"), *_scope()],
                )
            },
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `goodput token` made, where people sign in. A "
                    "browser that is signed in needs none.",
                }
            },
        },
    }


def _operation(
    name: str,
    summary: str,
    answer: dict[str, Any],
    parameters: list[dict[str, Any]] | None = None,
    more: tuple[str, ...] = (),
) -> dict[str, Any]:
    has_rows = "headers" in answer
    codes = ["401", "503", *more]
    if has_rows:
        codes += ["400", "403", "404", "429"]
    errors = {
        code: {"description": ERRORS[code], **_of("Error")}
        for code in sorted(codes)
        if name != "openapi"
    }
    return {
        "operationId": name,
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        "responses": {"200": {"description": summary, **answer}, **errors},
    }


def _scope() -> list[dict[str, Any]]:
    scope = {name: {**TEXT, "description": text} for name, text in SCOPE.items()}
    return [
        {"name": name, "in": "query", "schema": schema}
        for name, schema in {**scope, "format": FORMAT, "limit": LIMIT}.items()
    ]


def _in_path(name: str, example: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": TEXT, "example": example}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _of(name: str) -> dict[str, Any]:
    return _json({"$ref": f"#/components/schemas/{name}"})


def _rows_response() -> dict[str, Any]:
    headers = {
        "X-Goodput-Rows": ("Number of rows.", COUNT),
        "X-Goodput-Row-Limit": ("The largest number of rows.", COUNT),
        "X-Goodput-Truncated": ("Whether there were more rows.", FLAG),
        "X-Goodput-Rows-Withheld": (
            "Rows of the views within the time range and cluster that are of other teams.",
            COUNT,
        ),
    }
    content: dict[str, Any] = {
        kind.partition(";")[0]: {"schema": {"type": "string"} if form == "csv" else {}}
        for form, kind in MEDIA_TYPES.items()
    }
    content["application/json"] = {"schema": {"$ref": "#/components/schemas/Rows"}}
    return {
        "headers": {
            name: {"description": text, "schema": schema}
            for name, (text, schema) in headers.items()
        },
        "content": content,
    }


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _schemas() -> dict[str, Any]:
    column = _object({"name": TEXT, "type": TEXT, "meaning": TEXT_OR_NULL, "unit": TEXT_OR_NULL})
    view = _object(
        {
            "name": TEXT,
            "meaning": TEXT,
            "grain": {**_list(TEXT), "description": "The columns that identify a row."},
            "has_team_rows": {**FLAG, "description": "Whether its rows belong to teams."},
            "columns": _list(column),
        }
    )
    saved = _object(
        {
            "key": TEXT,
            "name": TEXT,
            "meaning": TEXT,
            "sql": TEXT,
            "is_shared": FLAG,
            "saved_by": TEXT_OR_NULL,
        }
    )
    rows = _object(
        {
            "columns": _list(_object({"name": TEXT, "type": TEXT})),
            "row_count": COUNT,
            "row_limit": COUNT,
            "is_truncated": {**FLAG, "description": "Whether there were more than row_limit rows."},
            "views": {**_list(TEXT), "description": "The views that were read."},
            "rows_withheld": {
                **FLAG,
                "description": "Whether the views were limited to the rows of the token's teams.",
            },
            "rows": _list({"type": "object"}),
        }
    )
    scope = {name: {**TEXT, "description": text} for name, text in SCOPE.items()}
    query = _object(
        {"sql": {**TEXT, "description": "One select on views of marts and reference (DuckDB)."}},
        {**scope, "format": FORMAT, "limit": LIMIT},
    )
    return {
        "Views": _object({"views": _list(view)}),
        "Queries": _object({"queries": _list(saved)}),
        "Rows": rows,
        "Query": query,
        "Error": _object({"error": TEXT, "message": TEXT}),
    }
