"""The routes of `/api/v1`, but those of the store: who asks is decided by `server.sign_in`."""

import asyncio
import json
import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goodput_app.access import current, rows
from goodput_app.access.identity import LOCAL
from goodput_app.process import turns, usage
from goodput_app.process.usage import BusyError
from goodput_app.server.api import document
from goodput_app.server.api.answers import Answers, Question
from goodput_app.server.api.formats import NOT_KEPT, response
from goodput_app.server.api.request_params import asked, refuse_unknown
from goodput_app.server.body import limited_body
from goodput_app.sql_access import run_query
from goodput_queries import saved_queries
from goodput_queries.database import Store
from goodput_queries.errors import GoodputError, NotPermittedError, QueryError
from goodput_queries.sandbox.views import View

log = logging.getLogger(__name__)

BELOW = "/api/v1"
BODY_MAX_BYTES = 1 << 18
Found = TypeVar("Found")


class NotFoundError(GoodputError):
    """There is no view or saved query of that name, or the person may not know of it."""


def api_routes(store: Store) -> list[Route]:
    """Return the routes that answer from a store."""

    def openapi(_request: Request) -> Response:
        return JSONResponse(document.openapi())

    def views(request: Request) -> Response:
        refuse_all(request.query_params)
        found = [_view(asdict(view)) for view in run_query.views(store)]
        return JSONResponse({"views": found}, headers=NOT_KEPT)

    answers = Answers(lambda: getattr(store, "commits", None))

    def rows_of_view(request: Request, _body: bytes) -> Question:
        name = request.path_params["view"]
        found = [view for view in run_query.views(store) if view.name == name]
        if not found:
            raise NotFoundError(f"there is no view {name[:100]!r} for you; see {BELOW}/views.")
        return _rows(store, request, found[0], request.query_params)

    def query(request: Request, body: bytes) -> Question:
        given = _object(body)
        refuse_unknown(given, "sql")
        sql = given.pop("sql", None)
        if not isinstance(sql, str):
            raise QueryError("'sql' is missing, expected a text with one select.")
        return _rows(store, request, sql, given)

    def queries(request: Request) -> Response:
        refuse_all(request.query_params)
        found = [asdict(one) for one in saved_queries.visible(store, _name())]
        return JSONResponse({"queries": found}, headers=NOT_KEPT)

    def rows_of_query(request: Request, _body: bytes) -> Question:
        key = request.path_params["key"]
        found = saved_queries.find(store, key, _name())
        if found is None:
            raise NotFoundError(f"there is no saved query {key[:100]!r}; see {BELOW}/queries.")
        asked = _rows(store, request, found.sql, request.query_params)
        return replace(asked, is_fixed=found.saved_by is None)  # its person may change it

    return [
        route(f"{BELOW}/openapi.json", openapi),
        route(f"{BELOW}/views", views),
        _of_rows(f"{BELOW}/views/{{view}}/rows", rows_of_view, answers),
        _of_rows(f"{BELOW}/query", query, answers, method="POST"),
        route(f"{BELOW}/queries", queries),
        _of_rows(f"{BELOW}/queries/{{key}}/rows", rows_of_query, answers),
    ]


def refuse_all(given: Mapping[str, object]) -> None:
    """Raise QueryError for any parameter."""
    if given:
        raise QueryError(f"there is no parameter {next(iter(given))[:50]!r}.")


def _rows(
    store: Store, request: Request, what: str | View, given: Mapping[str, object]
) -> Question:
    """Return the question for rows of a select or of a whole view, once it is recorded."""
    refuse_unknown(given)
    wanted = asked(request, given)
    scope = rows.limited(wanted.scope)
    run_query.record(store, run_query.question(what))

    def make() -> Response:
        return response(run_query.ask(store, what, scope, wanted.rows_max), wanted.form)

    any_time = replace(scope, from_ms=None, to_ms=None)  # `now-6h` stays the same question
    return Question(
        (what, wanted.window, any_time, wanted.rows_max, wanted.form),
        make,
        make_new="no-cache" in request.headers.get("cache-control", ""),
    )


def _name() -> str | None:
    """Return the name under which own queries are saved, None where nobody signs in."""
    identity = current.current_identity()
    return None if identity is LOCAL else identity.name


def _view(view: dict[str, Any]) -> dict[str, Any]:
    return {name: view[name] for name in ("name", "meaning", "grain", "has_team_rows", "columns")}


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise QueryError('the body is no JSON object, expected such as {"sql": "select 1"}.')
    return given


def route(path: str, answer: Callable[[Request], Response]) -> Route:
    """Return a route that answers in a thread, with the rights of who asks; failures are JSON."""

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_answered, request, lambda: answer(request))

    return Route(path, endpoint)


def _of_rows(
    path: str,
    ask: Callable[[Request, bytes], Question],
    answers: Answers,
    *,
    method: str = "GET",
) -> Route:
    """Return a route whose questions are answered once for all who ask the same."""
    asking: set[asyncio.Task[Response]] = set()  # the event loop alone would forget them

    async def endpoint(request: Request) -> Response:
        body = await limited_body(request, BODY_MAX_BYTES) if method == "POST" else b""
        if body is None:
            return _stated(QueryError(f"a request has at most {BODY_MAX_BYTES:,} bytes."), 413)
        sent = _answered(request, lambda: _as_sent(request, body))
        if isinstance(sent, Response):
            return sent

        def made(question: Question) -> Response:
            turns.come_later()
            return _answered(request, question.make)

        async def asked() -> Response:
            with answers.looking_up(sent):
                found = await run_in_threadpool(_answered, request, lambda: ask(request, body))
                if isinstance(found, Response):
                    return found
                answers.know(sent, found)
                spent = _answered(request, usage.account().refuse_spent)
                if isinstance(spent, Response):  # makes nothing that others would wait for
                    return answers.last(found) or spent
                return await answers.get(found, lambda: run_in_threadpool(made, found))

        kept, is_over = answers.at_once(sent)
        if kept is not None and is_over:  # not in the background of the answer: that holds its line
            asking.add(task := asyncio.create_task(asked()))
            task.add_done_callback(asking.discard)
        return kept or await asked()

    return Route(path, endpoint, methods=[method])


def _as_sent(request: Request, body: bytes) -> Hashable:
    """Return all that decides what a request asks, and whose rows it gets."""
    url, headers = request.url, request.headers
    who = current.current_identity(), current.current_address()
    is_new = "no-cache" in headers.get("cache-control", "")
    return url.path, url.query, body, headers.get("accept"), is_new, who


def _answered(request: Request, answer: Callable[[], Found]) -> Found | Response:
    """Return an answer, or the failure with its sentence."""
    try:
        return answer()
    except current.NotAllowedError as error:
        return _stated(error, 401)
    except NotFoundError as error:
        return _stated(error, 404)
    except NotPermittedError as error:
        return _stated(error, 403)
    except BusyError as error:
        return _stated(error, 429, {"Retry-After": str(int(error.retry_after_s))})
    except QueryError as error:
        return _stated(error, 400)
    except GoodputError as error:  # a store that does not answer; its text names the file
        log.error("%s: %s", request.url.path, error)
        return _stated(GoodputError("the database does not answer; its log says why."), 503)


def _stated(error: GoodputError, status: int, headers: dict[str, str] | None = None) -> Response:
    content = {"error": type(error).__name__, "message": str(error)}
    return JSONResponse(content, status_code=status, headers={**NOT_KEPT, **(headers or {})})
