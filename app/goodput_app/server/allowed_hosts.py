"""Under which names the server answers: a page that rebinds its name to this machine gets nothing.

Starlette's and Streamlit's checks know the `Host` of a request; here the `Origin` is checked, too,
of WebSockets and of every other request that has one. Streamlit would look up its external address
on the internet to judge a foreign origin: it sees only requests of its own.
"""

import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from goodput_app.access.proxy import address_of
from goodput_app.server.refusal import refuse
from goodput_queries.remote import LOOPBACK_HOSTS

log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/healthz"})


class AllowedHosts:
    """Middleware that refuses requests for other names, and from pages of other origins."""

    def __init__(self, app: ASGIApp, names: Sequence[str] | None) -> None:
        """Take names as in `[access] hosts`; None: every one."""
        self._app = app
        self._names = None if names is None else [name.lower() for name in names]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with 421 where its host and with 403 where its origin is foreign."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self._is_allowed(host) and scope["path"] not in OPEN_PATHS:
            sentence = (
                "This server does not answer under that name. Its operator lists the names in "
                "goodput.toml: hosts under [access].\n"
            )
            await refuse(scope, receive, send, PlainTextResponse(sentence, status_code=421))
            return
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        if not origins:
            await self._app(scope, receive, send)
            return
        netloc = _netloc(origins[0].decode("latin-1")) if len(origins) == 1 else ""
        if not netloc or (netloc != host.lower() and not self._is_listed(netloc)):
            await refuse(scope, receive, send, PlainTextResponse("Foreign origin.\n", 403))
            return
        await self._app(_of_its_own(scope, netloc), receive, send)

    def _is_allowed(self, host: str) -> bool:
        if self._names is None:
            return bool(host)
        name = _hostname(host)
        address = address_of(name)
        return (address is not None and address.is_loopback) or self._matches(name)

    def _is_listed(self, netloc: str) -> bool:
        """Say whether a proxy that does not pass the host on may stand under that name."""
        name = _hostname(netloc)
        return name not in LOOPBACK_HOSTS and self._matches(name)

    def _matches(self, name: str) -> bool:
        return any(
            name == known or (known.startswith("*.") and name.endswith(known[1:]))
            for known in self._names or ()
        )


def _of_its_own(scope: Scope, netloc: str) -> Scope:
    """Return a request as Streamlit takes it for one of its own pages.

    A WebSocket's host is that of its origin, which is in the signed cookie, too; other requests
    need no origin.
    """
    headers = scope["headers"]
    if scope["type"] == "websocket":
        kept = [header for header in headers if header[0] != b"host"]
        return {**scope, "headers": [*kept, (b"host", netloc.encode())]}
    return {**scope, "headers": [header for header in headers if header[0] != b"origin"]}


def _hostname(netloc: str) -> str:
    """Return the name in a host with or without a port, '' for what is none."""
    try:
        parts = urlsplit(f"//{netloc}")
        _ = parts.port  # raises for what is no number
    except ValueError:
        return ""
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return ""
    return (parts.hostname or "").rstrip(".")


def _netloc(origin: str) -> str:
    """Return host and port of an origin, '' for what is none (`null`)."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not _hostname(parts.netloc):
        return ""
    return parts.netloc.lower()
