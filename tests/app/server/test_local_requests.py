"""Where people sign in, nothing that a proxy may have passed on counts as local."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.app.asgi import ask

from goodput_app.access.settings import AccessSettings, Member, OidcSettings, ProxySettings, Token
from goodput_app.access.tokens import digest
from goodput_app.server import metrics_access
from goodput_app.server.allowed_hosts import AllowedHosts
from goodput_app.server.local_request import may_be_local
from goodput_app.server.sign_in import SignIn

HERE, OTHER = ("127.0.0.1", 1), ("10.0.0.7", 1)
PROGRAM, OF_TEAM = "goodput_program", "goodput_of_a_team"
MEMBERS = (Member(person="ada", teams=("nlp",)),)


TOKENS = (
    Token(name="prometheus", sha256=digest(PROGRAM)),
    Token(name="nlp", sha256=digest(OF_TEAM), teams=("nlp",)),
)
BY_PROXY = AccessSettings(sign_in="proxy", hosts=("h.test",), members=MEMBERS, tokens=TOKENS)
ELSEWHERE = AccessSettings(
    sign_in="proxy", hosts=("h.test",), members=MEMBERS, tokens=TOKENS,
    proxy=ProxySettings(name_header="X-User", addresses=("10.0.0.0/24",)),
)  # fmt: skip
BY_OIDC = AccessSettings(
    sign_in="oidc", members=MEMBERS, tokens=TOKENS,
    oidc=OidcSettings(
        issuer="https://id.test", client_id="c", client_secret_env="A", cookie_secret_env="COOKIE",
        redirect_uri="https://h.test/oauth2callback",
    ),
)  # fmt: skip


def site(access):
    """Return an application whose `/metrics` has the figures of all teams."""

    def metrics(request):
        return metrics_access.refusal(request, access) or JSONResponse("all teams")

    def store(request):
        return JSONResponse(may_be_local(request, access))

    async def audit(*_): ...

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/api/v1/store/read", store, methods=["POST"])],
        middleware=[
            Middleware(AllowedHosts, access.names(is_loopback=True)),
            Middleware(SignIn, access, audit),
        ],
    )


def asked(access, headers, peer=HERE, path="/metrics", method="GET"):
    """Return the answer to a request under the loopback name, as nginx passes it on."""
    here = "http://127.0.0.1:8501"
    return ask(site(access), path, method=method, peer=peer, base_url=here, headers=headers)


@pytest.fixture(autouse=True)
def secrets(monkeypatch):
    """Set the secret that signs cookies."""
    monkeypatch.setenv("A", "a")
    monkeypatch.setenv("COOKIE", "c" * 32)


@pytest.mark.parametrize("access", [BY_PROXY, BY_OIDC])
@pytest.mark.parametrize(
    "headers",
    [{}, {"X-Forwarded-User": "ada"}, {"X-Real-IP": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.9"}],
)
def test_a_loopback_proxy_gets_no_metrics_without_a_token(access, headers):
    assert asked(access, headers).status_code == 403


@pytest.mark.parametrize(
    ("headers", "peer", "status"),
    [
        ({}, HERE, 200),
        ({"x-user": "ada"}, HERE, 403),
        ({"X-Forwarded-Groups": "ml"}, HERE, 403),
        ({"X-Forwarded-For": "192.0.2.9", "X-User": "ada"}, HERE, 403),
        ({}, OTHER, 403),
        ({"X-User": "ada"}, OTHER, 403),
    ],
)
def test_without_a_token_metrics_are_for_this_machine_alone(headers, peer, status):
    """Not for a trusted proxy elsewhere, nor for who has the configured header of names."""
    assert asked(ELSEWHERE, headers, peer).status_code == status


@pytest.mark.parametrize("access", [BY_PROXY, BY_OIDC, ELSEWHERE])
@pytest.mark.parametrize(
    ("token", "status"), [(PROGRAM, 200), (OF_TEAM, 403), ("goodput_unknown", 401), ("x", 401)]
)
def test_metrics_are_for_tokens_that_see_all_teams(access, token, status):
    headers = {"Authorization": f"Bearer {token}", "X-User": "ada"}

    assert asked(access, headers).status_code == status


@pytest.mark.parametrize(("token", "status"), [("t0ken", 200), ("token", 401), ("", 401)])
def test_metrics_are_for_who_has_their_own_token(monkeypatch, token, status):
    monkeypatch.setenv("METRICS_TOKEN", "t0ken")
    access = AccessSettings(metrics_token_env="METRICS_TOKEN")

    assert asked(access, {"Authorization": f"Bearer {token}"}, OTHER).status_code == status
    assert asked(access, {}).status_code == 401


@pytest.mark.parametrize(
    ("access", "headers", "is_local"),
    [
        (BY_PROXY, {}, True),
        (BY_PROXY, {"X-Forwarded-User": "ada"}, False),
        (ELSEWHERE, {"X-User": "ada"}, False),
    ],
)
def test_calls_of_the_store_that_name_a_person_are_not_local(access, headers, is_local):
    answer = asked(access, headers, path="/api/v1/store/read", method="POST")

    assert answer.json() is is_local
