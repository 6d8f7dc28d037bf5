"""Answers as files: JSON with what the rows are, or CSV, Parquet and Arrow."""

import json

from goodput_app.row_formats import as_csv, as_json, as_parquet
from goodput_queries.remote import packed
from goodput_queries.sandbox.select import Answer

MEDIA_TYPES = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}


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
        "rows_withheld": answer.is_limited,
    }
    text = json.dumps(head, ensure_ascii=False)
    return f'{text[:-1]}, "rows": {as_json(answer.rows).strip()}}}\n'.encode()
