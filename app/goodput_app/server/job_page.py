"""`/run/JOB`: a job's report as text for its output, or as a small page for portals to embed."""

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from goodput_app.job_report import FORMS, job_report
from goodput_app.process.usage import BusyError
from goodput_app.server.api.formats import NOT_KEPT
from goodput_app.server.api.routes import route
from goodput_app.server.sign_in import JOB_REPORTS
from goodput_app.server.sign_in_page import link, page
from goodput_app.settings import settings
from goodput_app.sql_access import run_query
from goodput_queries.database import Store
from goodput_queries.errors import NotPermittedError, QueryError


def job_route(store: Store, url: str) -> Route:
    """Return the route. url: of the server, for links where the settings name no public one."""

    def answer(request: Request) -> Response:
        job, given = request.path_params["job"], request.query_params
        form = given.get("format", FORMS[0])
        if form not in FORMS:
            raise QueryError(f"'format' is {form[:50]!r}, expected one of {', '.join(FORMS)}.")
        is_page = "text/html" in request.headers.get("accept", "")
        try:
            with run_query.turn(store, f"report of job {job}") as own:
                base_url = settings().public_url or url
                report = job_report(own, job, base_url, given.get("cluster"))
        except (BusyError, NotPermittedError):
            raise
        except QueryError as error:
            if is_page:
                return _page(f"<p>{escape(str(error))}</p>", 404)
            return PlainTextResponse(f"{error}\n", 404, headers=NOT_KEPT)
        if not is_page:
            return PlainTextResponse(report.text(form), headers=NOT_KEPT)
        facts = (f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in report.facts().items())
        return _page(f"<dl>{''.join(facts)}</dl>{link(report.page or '', 'Open the run')}", 200)

    return route(f"{JOB_REPORTS}{{job:path}}", answer)


def _page(body: str, status: int) -> HTMLResponse:
    made = page(body, status)
    made.headers.update(NOT_KEPT)
    return made
