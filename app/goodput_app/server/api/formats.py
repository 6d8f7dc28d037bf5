"""The format that a client asks for, and the response with what was left out."""

from starlette.requests import Request
from starlette.responses import Response

from goodput_app.sql_access.formats import MEDIA_TYPES, content
from goodput_queries.sandbox.select import Answer

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
        "X-Goodput-Rows-Withheld": "true" if answer.is_limited else "false",
        **NOT_KEPT,
    }
    if form != "json":
        headers["Content-Disposition"] = f'attachment; filename="goodput.{form}"'
    return Response(content(answer, form), media_type=MEDIA_TYPES[form], headers=headers)
