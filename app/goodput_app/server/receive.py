"""The routes of senders: a request is checked, kept in a file and answered; the collector loads it.

Each request needs the token of `[receive]`, from this machine, too. A few are read at once; a
sender whose body does not come in half a minute is answered 408.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from goodput_app.server.body import limited_body
from goodput_app.server.metrics_access import has_token
from goodput_app.settings import settings
from goodput_ingest.live.config import Collector
from goodput_ingest.received.live import Received
from goodput_ingest.received.reply import RETRY_AFTER_S, RefusedError, too_long
from goodput_queries.errors import GoodputError

AT_ONCE = 4
BODY_S = 30.0


def receive_routes(sources: Sequence[Collector]) -> list[Route]:
    """Return a route for each source that senders post to."""
    places = asyncio.Semaphore(AT_ONCE)
    found = [one.source for one in sources if isinstance(one.source, Received)]
    return [Route(one.path, partial(_answer, one, places), methods=["POST"]) for one in found]


async def _answer(source: Received, places: asyncio.Semaphore, request: Request) -> Response:
    headers = dict(request.headers)
    try:
        token = settings().receive.token()
        if token is None or not has_token(request, token):
            raise RefusedError(401, "the bearer token is missing or not that of [receive].")
        async with places:
            async with asyncio.timeout(BODY_S):
                body = await limited_body(request, source.body_max_bytes)
            if body is None:
                raise too_long(source.body_max_bytes)
            reply = await run_in_threadpool(source.receive, headers, body)
    except RefusedError as error:
        reply = source.refusal(headers, error.status, str(error))
    except TimeoutError:
        reply = source.refusal(headers, 408, f"the body did not come within {BODY_S:g} s.")
    except GoodputError as error:  # the folder of requests is full, or a disk fails
        reply = source.refusal(headers, 503, str(error))
        reply.headers["Retry-After"] = str(RETRY_AFTER_S)
    return Response(reply.body, reply.status, reply.headers, reply.content_type)
