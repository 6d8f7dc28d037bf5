"""Who may read `/metrics` where people sign in: the token of the settings, or this machine."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse, Response

from goodput_app.server.local_request import is_direct_and_local

if TYPE_CHECKING:
    from starlette.requests import Request

    from goodput_app.access.settings import AccessSettings


def refusal(request: Request, access: AccessSettings) -> Response | None:
    """Return why a request is refused, None where it is not."""
    token = access.metrics_token()
    if token is None:
        if access.sign_in is None or is_direct_and_local(request):
            return None
        sentence = "/metrics is for this machine; set metrics_token_file under [access].\n"
        return PlainTextResponse(sentence, 403)
    if has_token(request, token):
        return None
    return PlainTextResponse("The bearer token is missing or wrong.\n", 401)


def has_token(request: Request, token: str) -> bool:
    """Say whether a request carries a bearer token."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and is_right
