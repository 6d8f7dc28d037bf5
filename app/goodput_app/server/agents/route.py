"""The route `/mcp`: the tools of programs, with the rights of the person or token that asks."""

from contextlib import nullcontext
from functools import cached_property
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from goodput_app.server.sign_in import MCP
from goodput_app.settings import settings
from goodput_queries.database import Store
from goodput_queries.errors import MissingExtraError


def mcp_route(store: Store, url: str) -> Route:
    """Return the route. url: of the server, for links where the settings name no public one."""
    return Route(MCP, _Endpoint(store, url), methods=["GET", "POST", "DELETE"])


class _Endpoint:
    """The tools of a store; their package is imported for the first request."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; 501 where the package is not installed.

        405 for all but a call: there are no sessions and no streams to open or end.
        """
        if scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        try:
            from goodput_app.server.agents import protocol  # noqa: PLC0415 -- an extra, and half a second
        except MissingExtraError as error:
            said = {"error": type(error).__name__, "message": str(error)}
            await JSONResponse(said, status_code=501)(scope, receive, send)
            return
        await protocol.over_http(self._server, scope, receive, send)

    @cached_property
    def _server(self) -> Any:
        from goodput_app.server.agents import protocol  # noqa: PLC0415 -- as above

        return protocol.server(lambda: nullcontext(self._store), settings().public_url or self._url)
