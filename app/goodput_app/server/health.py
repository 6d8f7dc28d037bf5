"""`/healthz`: whether the server answers, and what it still has to do."""

import logging

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from goodput_app.distribution import version
from goodput_app.process import evaluations
from goodput_app.server.background import Upkeep
from goodput_queries import remote
from goodput_queries.database import LocalStore
from goodput_queries.errors import GoodputError

log = logging.getLogger(__name__)


def health_route(store: LocalStore, instance: str, upkeep: Upkeep) -> Route:
    """Return the route `/healthz`.

    is_built: the last upkeep brought the ledger up to date. is_writable: the last load did not
    find the disk full. pending_evaluations: evaluations of findings that run or wait for a
    thread; with none, no page is about to be redrawn.
    """

    def healthz(_request: Request) -> Response:
        try:
            store.read("select 1", timeout_s=remote.HEALTH_TIMEOUT_S)
            status, code = "ok", 200
        except GoodputError:
            log.exception("the database does not answer; free some space and start again")
            status, code = "the database does not answer", 503
        body = {
            "status": status,
            "version": version(),
            "instance": instance,
            "is_built": upkeep.is_built,
            "is_writable": store.write_error is None,
            "pending_evaluations": evaluations.running(),
        }
        return JSONResponse(body, status_code=code, headers={"Cache-Control": "no-store"})

    return Route("/healthz", healthz)
