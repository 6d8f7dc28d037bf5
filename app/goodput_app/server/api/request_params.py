"""What a request asks for: time range, filters, format and number of rows, all of it checked."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from starlette.requests import Request

from goodput_app.server.api.formats import format_of
from goodput_app.sql_access import run_query
from goodput_app.sql_access.formats import MEDIA_TYPES
from goodput_app.time_expressions import moment_ms
from goodput_queries.errors import QueryError
from goodput_queries.scope import Scope

FILTERS = ("cluster", "team")
PARAMETERS = ("from", "to", *FILTERS, "format", "limit")
NAME_MAX_CHARS = 500
NOW_STEP_S = 10  # what asks for `now-6h` again within it asks the same


@dataclass(frozen=True)
class Asked:
    """A request for rows. window: as it says; rows_max: None where it does not say."""

    window: tuple[str | None, str | None]
    scope: Scope
    form: str
    rows_max: int | None


def asked(request: Request, given: Mapping[str, object]) -> Asked:
    """Return what the parameters ask for; raises QueryError that names the one that is wrong."""
    texts = {name: _text(name, given.get(name)) for name in ("from", "to", *FILTERS, "format")}
    form = format_of(request, texts["format"])
    if form not in MEDIA_TYPES:
        raise QueryError(f"'format' is {form!r}, expected one of {', '.join(MEDIA_TYPES)}.")
    now = datetime.fromtimestamp(time.time() // NOW_STEP_S * NOW_STEP_S, UTC)
    begin, end = texts["from"], texts["to"]
    scope = Scope(
        from_ms=None if begin is None else moment_ms(begin, now),
        to_ms=None if end is None else moment_ms(end, now, is_end=True),
        cluster=texts["cluster"],
        team=texts["team"],
    )
    return Asked((begin, end), scope, form, _limit(given.get("limit")))


def refuse_unknown(given: Mapping[str, object], *more: str) -> None:
    """Raise QueryError for a parameter that does not exist: a misspelt one would widen the rows."""
    for name in given:
        if name not in (*PARAMETERS, *more):
            known = ", ".join((*more, *PARAMETERS))
            raise QueryError(f"there is no parameter {name[:50]!r}; known: {known}.")


def _text(name: str, given: object) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or not 1 <= len(given) <= NAME_MAX_CHARS:
        raise QueryError(f"{name!r} is expected as a text of 1 to {NAME_MAX_CHARS} characters.")
    return given


def _limit(given: object) -> int | None:
    if given is None:
        return None
    most = run_query.limits().rows_max
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdigit() and len(text) < 10):
        raise QueryError(f"'limit' is {text[:50]!r}, expected a number of 1 to {most:,} rows.")
    if not 1 <= int(text) <= most:
        raise QueryError(f"'limit' is {int(text):,}, expected 1 to {most:,} rows.")
    return int(text)
