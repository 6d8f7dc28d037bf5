"""Rows as a client asks for them: JSON with what they are, or CSV, Parquet and Arrow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.responses import Response

from goodput_app.row_formats import as_csv, as_json, as_parquet
from goodput_queries.storage.remote import packed

if TYPE_CHECKING:
    from starlette.requests import Request

    from goodput_queries.sandbox.select import Answer

MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
NOT_KEPT = {"Cache-Control": "no-store"}


def format_of(request: Request, given: str | None) -> str:
    """Return the format that a request names, in its parameter or else its Accept header."""
    if given is not None:
        return given
    accepted = request.headers.get("accept", "")
    types = ((form, kind.partition(";")[0]) for form, kind in MEDIA_TYPES.items())
    return next((form for form, kind in types if kind in accepted), "json")


def response(answer: Answer, form: str) -> Response:
    """Return an answer in a format; headers say what was left out, of JSON also its fields."""
    headers = {
        "X-Goodput-Rows": str(answer.rows.height),
        "X-Goodput-Row-Limit": str(answer.rows_max),
        "X-Goodput-Truncated": "true" if answer.is_cut else "false",
        "X-Goodput-Rows-Withheld": str(sum(answer.withheld.values())),
        **NOT_KEPT,
    }
    if form != "json":
        headers["Content-Disposition"] = f'attachment; filename="goodput.{form}"'
    return Response(content(answer, form), media_type=MEDIA_TYPES[form], headers=headers)


def content(answer: Answer, form: str) -> bytes:
    """Return the bytes of an answer in a format."""
    if form == "arrow":
        return packed(answer.rows)
    if form == "csv":
        return as_csv(answer.rows)
    if form == "parquet":
        return as_parquet(answer.rows)
    head = {
        "columns": [{"name": name, "type": str(kind)} for name, kind in answer.rows.schema.items()],
        "row_count": answer.rows.height,
        "row_limit": answer.rows_max,
        "is_truncated": answer.is_cut,
        "views": list(answer.views),
        "rows_withheld": answer.withheld,
    }
    text = json.dumps(head, ensure_ascii=False)
    return f'{text[:-1]}, "rows": {as_json(answer.rows).strip()}}}\n'.encode()
