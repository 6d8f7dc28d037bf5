"""Links to pages of the dashboard, with the time range and the filters of a scope."""

from urllib.parse import urlencode

from goodput_queries.scope import Scope
from goodput_queries.scope import iso as iso_of

FILTERS = ("cluster", "team", "node", "run")


def page_url(base_url: str | None, page: str, scope: Scope, **more: str) -> str:
    """Return the address of a page; below the dashboard's own where that is not known.

    page: the last part of its address, empty for the Overview. more: parameters of the page.
    """
    given = {**filters_of(scope), "from": iso(scope.from_ms), "to": iso(scope.to_ms), **more}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    return f"{(base_url or '').rstrip('/')}/{page}{'?' if query else ''}{query}"


def filters_of(scope: Scope) -> dict[str, str]:
    """Return the filters of a scope that pages have, by parameter."""
    given = {name: getattr(scope, name) for name in FILTERS}
    return {name: value for name, value in given.items() if value}


def iso(at_ms: int | None) -> str | None:
    """Return a moment in epoch milliseconds as ISO 8601."""
    return None if at_ms is None else iso_of(at_ms)
