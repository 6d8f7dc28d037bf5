"""Who may read `/metrics` where people sign in: who has a token, or this machine."""

import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from goodput_app.access import tokens
from goodput_app.access.settings import AccessSettings
from goodput_app.server.local_request import is_local

REFUSED = (
    "/metrics needs a bearer token: that of metrics_token_file under [access], or one of "
    "[[access.tokens]] that sees all teams.\n"
)


def refusal(request: Request, access: AccessSettings) -> Response | None:
    """Return why a request is refused, None where it is not.

    `/metrics` has the figures of all teams: a token that is limited to some of them is refused,
    from this machine, too.
    """
    given = tokens.bearer(request.headers.raw)
    program = None if given is None else tokens.identity_of(given, access)
    if program is not None:
        sentence = "This token sees some teams only, and /metrics has the figures of all.\n"
        return None if program.teams is None else PlainTextResponse(sentence, 403)
    token = access.metrics_token()
    if token is None and (access.sign_in is None or is_local(request, access)):
        return None
    if token is not None and has_token(request, token):
        return None
    if "authorization" in request.headers or token is not None:
        return PlainTextResponse("The bearer token is missing or wrong.\n", 401)
    return PlainTextResponse(REFUSED, 403)


def has_token(request: Request, token: str) -> bool:
    """Say whether a request carries a bearer token."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and is_right
