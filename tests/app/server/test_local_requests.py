"""Where people sign in, nothing that a proxy may have passed on counts as local."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from tests.app.served import ask
from tests.app.server.conftest import unrecorded
from tests.tables import gives

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
    oidc=OidcSettings(issuer="https://id.test", client_id="c", client_secret_env="A",
                      cookie_secret_env="COOKIE", redirect_uri="https://h.test/oauth2callback"),
)  # fmt: skip


def site(access):
    """Return an application whose `/metrics` has the figures of all teams."""

    def metrics(request):
        return metrics_access.refusal(request, access) or JSONResponse("all teams")

    def store(request):
        return JSONResponse(may_be_local(request, access))

    return Starlette(
        routes=[Route("/metrics", metrics), Route("/api/v1/store/read", store, methods=["POST"])],
        middleware=[
            Middleware(AllowedHosts, access.names(is_loopback=True)),
            Middleware(SignIn, access, unrecorded),
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


def shows(token):
    return {"Authorization": f"Bearer {token}", "X-User": "ada"}


PASSED_ON = (
    {}, {"X-Forwarded-User": "ada"}, {"X-Real-IP": "192.0.2.1"}, {"X-Forwarded-For": "192.0.2.9"},
)  # fmt: skip
OF_TOKENS = {PROGRAM: 200, OF_TEAM: 403, "goodput_unknown": 401, "x": 401}
ASKED = [  # who signs people in; headers, peer: status
    *((access, headers, HERE, 403) for access in (BY_PROXY, BY_OIDC) for headers in PASSED_ON),
    (ELSEWHERE, {}, HERE, 200),
    (ELSEWHERE, {"x-user": "ada"}, HERE, 403),  # the configured header of names
    (ELSEWHERE, {"X-Forwarded-Groups": "ml"}, HERE, 403),
    (ELSEWHERE, {"X-Forwarded-For": "192.0.2.9", "X-User": "ada"}, HERE, 403),
    (ELSEWHERE, {}, OTHER, 403),
    (ELSEWHERE, {"X-User": "ada"}, OTHER, 403),  # a trusted proxy elsewhere
    *((access, shows(token), HERE, status)
      for access in (BY_PROXY, BY_OIDC, ELSEWHERE) for token, status in OF_TOKENS.items()),
]  # fmt: skip


@pytest.mark.parametrize(("access", "headers", "peer", "status"), ASKED)
def test_metrics_are_for_this_machine_alone_and_tokens_that_see_all_teams(
    access, headers, peer, status
):
    """A proxy of this machine may pass anybody on."""
    assert asked(access, headers, peer).status_code == status


@pytest.mark.parametrize(("token", "status"), [("t0ken", 200), ("token", 401), ("", 401)])
def test_metrics_are_for_who_has_their_own_token(monkeypatch, token, status):
    monkeypatch.setenv("METRICS_TOKEN", "t0ken")
    access = AccessSettings(metrics_token_env="METRICS_TOKEN")

    assert asked(access, {"Authorization": f"Bearer {token}"}, OTHER).status_code == status
    assert asked(access, {}).status_code == 401


test_calls_of_the_store_that_name_a_person_are_not_local = gives(
    lambda *given: asked(*given, path="/api/v1/store/read", method="POST").json(),
    (BY_PROXY, {}, True),
    (BY_PROXY, {"X-Forwarded-User": "ada"}, False),
    (ELSEWHERE, {"X-User": "ada"}, False),
)
