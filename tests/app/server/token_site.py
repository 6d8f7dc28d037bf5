"""A part of the server behind the check of tokens: one of all teams, one of the red team."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from tests.two_teams import RED

from goodput_app.access import tokens
from goodput_app.access.settings import AccessSettings, Token
from goodput_app.server.sign_in import SignIn

ALL, RED_TEAM = (tokens.new_token() for _ in range(2))
ACCESS = AccessSettings(
    sign_in="proxy", hosts=("goodput.example.org",), default_role="viewer",
    tokens=(
        Token("agent", tokens.digest(ALL)),
        Token("red agent", tokens.digest(RED_TEAM), teams=(RED,)),
    ),
)  # fmt: skip
URL = "https://goodput.example.org"


async def _dropped(*_entry):
    """Drop an entry of the audit log."""


def behind_tokens(*routes):
    """Return an application with these routes, behind the check."""
    return Starlette(routes=routes, middleware=[Middleware(SignIn, ACCESS, _dropped)])
