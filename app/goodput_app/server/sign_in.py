"""Who may come in: the check of every request, before any page, file or call.

What is open without it: `/healthz`; `/metrics`, `/api/v1/store/` and the routes of senders, which
have tokens of their own; the description of the API; and the three paths with which Streamlit signs
people in and out. The rest of `/api/v1`, `/mcp` and reports of jobs are for who is signed in, and
for programs with a token of the settings.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from time import time as now_s
from typing import Any

from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goodput_app.access import current, oidc, tokens
from goodput_app.access.identity import Identity
from goodput_app.access.members import Person, RefusedError, identity_of
from goodput_app.access.proxy import TrustedProxy
from goodput_app.access.settings import AccessSettings
from goodput_app.server import sign_in_page
from goodput_app.server.refusal import POLICY_VIOLATION, refuse

Audit = Callable[[str, str, str | None, str], Awaitable[None]]

OPEN = frozenset({"/healthz", "/metrics", "/api/v1/openapi.json"})
OPEN_BELOW = ("/api/v1/store/", "/api/v1/write", "/v1/metrics")  # for POST
API = "/api/v1/"
MCP = "/mcp"
JOB_REPORTS = "/run/"
PEOPLE_KNOWN_MAX = 10_000
NOT_A_MEMBER = (
    "You are signed in as {name}, but nothing lets you in. Ask the operator of this dashboard to "
    "add you or one of your groups under [[access.members]] in goodput.toml."
)


@dataclass(frozen=True)
class _Asker:
    """Who sends a request. address: from where."""

    identity: Identity
    address: str
    expires_at_s: float


class SignIn:
    """Middleware that lets only members in, and says to pages and routes who they are."""

    def __init__(
        self, app: ASGIApp, access: AccessSettings, audit: Audit, public_url: str | None = None
    ) -> None:
        """Take the settings; audit: records who, action, subject and address.

        public_url: under which browsers know the site, where the settings say it.
        """
        self._app = app
        self._access = access
        self._audit = audit
        self._proxy = TrustedProxy(access.proxy)
        is_oidc = access.sign_in == "oidc" and access.oidc is not None
        self._cookie = (
            oidc.SignedCookie(access.oidc, access.session_h) if is_oidc and access.oidc else None
        )
        self._base = access.oidc.base_path if is_oidc and access.oidc else ""
        self._is_https = (access.public_url or public_url or "").startswith("https:")
        self._session_s = access.session_h * 3600
        self._seen: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = [header for header in scope["headers"] if header[0] not in current.OWN_HEADERS]
        scope = {**scope, "headers": headers}
        send = self._secure(send)
        if self._access.sign_in is None or self._is_open(scope):
            if self._cookie and scope["path"] == f"{self._base}{oidc.LOGOUT}":
                await self._note_sign_out(scope)
            await self._app(scope, receive, send)
            return
        asker = await self._asker(scope)
        if not isinstance(asker, _Asker):
            await refuse(scope, receive, send, asker)
            return
        if (elsewhere := sign_in_page.after_sign_in(scope, self._base)) is not None:
            await elsewhere(scope, receive, send)
            return
        await self._note(asker.identity.name, "sign in", None, asker.address)
        scope["headers"] = [*headers, *_own_headers(asker)]
        if scope["type"] == "websocket":
            receive = _until(asker.expires_at_s, receive, send)
        with current.request_of(asker.identity, asker.address):
            await self._app(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        path = scope["path"]
        if path in OPEN or (scope["method"] == "POST" and path.startswith(OPEN_BELOW)):
            return True
        signing = (oidc.LOGIN, oidc.LOGOUT, oidc.CALLED_BACK)
        return self._cookie is not None and path in [f"{self._base}{one}" for one in signing]

    async def _asker(self, scope: Scope) -> _Asker | Response:
        """Return who asks, or the answer to somebody who is not let in."""
        peer = (scope.get("client") or ("",))[0]
        sign_out = f"{self._base}{oidc.LOGOUT}" if self._cookie else None
        try:
            address = self._proxy.client(peer, scope["headers"])
            if scope["type"] == "http" and takes_tokens(scope["path"]):
                token = tokens.bearer(scope["headers"])
                if token is not None:
                    return await self._program(token, address)
            person = self._person(scope, peer)
        except RefusedError as error:
            await self._note("", "refused", str(error), peer)
            return sign_in_page.refused(str(error), sign_out)
        if person is None:
            return self._not_signed_in(scope)
        identity = identity_of(person, self._access)
        if identity is None:
            await self._note(person.name, "refused", "not a member", address)
            return sign_in_page.refused(NOT_A_MEMBER.format(name=person.name), sign_out)
        expires_at_s = person.expires_at_s or now_s() + self._session_s
        return _Asker(identity, address, expires_at_s)

    async def _program(self, token: str, address: str) -> _Asker | Response:
        """Return the program that has a token, or the answer to a token that is none."""
        identity = tokens.identity_of(token, self._access)
        if identity is None:
            await self._note("", "refused", "an unknown or expired token", address)
            message = "The token is unknown or has expired."
            return JSONResponse({"error": "NotAllowedError", "message": message}, 401)
        return _Asker(identity, address, now_s() + self._session_s)

    def _person(self, scope: Scope, peer: str) -> Person | None:
        if self._cookie is not None:
            return self._cookie.person(HTTPConnection(scope).cookies)
        return self._proxy.person(peer, scope["headers"])

    def _not_signed_in(self, scope: Scope) -> Response:
        if scope["path"] == f"{self._base}{sign_in_page.SIGN_IN}":
            return RedirectResponse(f"{self._base}{oidc.login_url()}", 302)
        accepts = b",".join(value for name, value in scope["headers"] if name == b"accept")
        if b"text/html" in accepts:
            return sign_in_page.sign_in(scope, self._base)
        return PlainTextResponse("Sign in first.\n", 401)

    async def _note(self, name: str, action: str, subject: str | None, address: str) -> None:
        """Record a sign-in or a refusal, once in the length of a session."""
        key, now = (name, action, address), monotonic()
        if now - self._seen.get(key, -self._session_s) < self._session_s:
            return
        self._seen[key] = now
        while len(self._seen) > PEOPLE_KNOWN_MAX:
            self._seen.popitem(last=False)
        await self._audit(name, action, subject, address)

    async def _note_sign_out(self, scope: Scope) -> None:
        """Record that somebody signs out; their cookie ends with it."""
        asker = await self._asker(scope)
        if isinstance(asker, _Asker):
            if self._cookie is not None:
                self._cookie.end(HTTPConnection(scope).cookies)
            self._seen.pop((asker.identity.name, "sign in", asker.address), None)
            await self._audit(asker.identity.name, "sign out", None, asker.address)

    def _secure(self, send: Send) -> Send:
        """Return a `send` whose cookies a browser sends over TLS only, where the site has TLS."""
        if not self._is_https:
            return send

        async def secured(message: Message) -> None:
            if message["type"] in {"http.response.start", "websocket.accept"}:
                headers = [
                    (name, value + b"; Secure") if name == b"set-cookie" else (name, value)
                    for name, value in message.get("headers", ())
                ]
                message = {**message, "headers": headers}
            await send(message)

        return secured


def takes_tokens(path: str) -> bool:
    """Return whether programs are let in there with a token of the settings."""
    return path.startswith((API, JOB_REPORTS)) or path == MCP


def _own_headers(asker: _Asker) -> list[tuple[bytes, bytes]]:
    return [
        (current.HEADER.lower().encode(), current.packed(asker.identity).encode()),
        (current.ADDRESS_HEADER.lower().encode(), asker.address.encode()),
    ]


def _until(expires_at_s: float, receive: Receive, send: Send) -> Receive:
    """Return a `receive` of a WebSocket that is closed when its session ends."""

    async def limited() -> Any:
        try:
            return await asyncio.wait_for(receive(), max(0.0, expires_at_s - now_s()))
        except TimeoutError:
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
            return {"type": "websocket.disconnect", "code": POLICY_VIOLATION, "reason": ""}

    return limited
