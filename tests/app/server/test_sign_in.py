"""Nothing is given before somebody signed in: hosts, origins, headers of a trusted proxy.

Where people sign in, nothing that a proxy may have passed on counts as local.
"""

import asyncio
import contextlib
import itertools

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocketDisconnect
from tests.app.served import ask
from tests.tables import each, gives

from goodput_app.access import current
from goodput_app.access.identity import LOCAL
from goodput_app.access.settings import AccessSettings, Member, OidcSettings, ProxySettings, Token
from goodput_app.access.tokens import digest
from goodput_app.server import metrics_access, sign_in
from goodput_app.server.allowed_hosts import AllowedHosts
from goodput_app.server.local_request import may_be_local
from goodput_app.server.sign_in import SignIn

PROXY = ("10.0.0.7", 1234)
STRANGER = ("10.0.1.7", 1234)
HOST = "goodput.example.org"
MEMBERS = (Member(person="ada", role="admin"), Member(group="ml", teams=("nlp",)))
ACCESS = AccessSettings(
    sign_in="proxy", hosts=("goodput.example.org",),
    proxy=ProxySettings(addresses=("10.0.0.0/24",)), members=MEMBERS,
)  # fmt: skip
ADA = [("X-Forwarded-User", "ada")]


def who(request):
    identity = current.current_identity()
    seen = {n.lower(): value for n, value in request.headers.items() if n.startswith("x-good")}
    teams = None if identity.teams is None else sorted(identity.teams)
    who = (identity.name, sorted(identity.roles), teams)
    answer = JSONResponse([*who, current.current_address(), seen])
    answer.set_cookie("_streamlit_xsrf", "x")
    return answer


async def stream(socket):
    await socket.accept()
    found = current.unpacked(socket.headers[current.HEADER])
    await socket.send_json([found.name, socket.headers["host"]])
    with contextlib.suppress(WebSocketDisconnect):
        await socket.receive_bytes()


class Site:
    """An application behind the check, and what it records."""

    def __init__(self, access, names, public_url=None):
        self.log = []

        def metrics(request):
            return metrics_access.refusal(request, access) or JSONResponse("all teams")

        def store(request):
            return JSONResponse(may_be_local(request, access))

        signed = Middleware(SignIn, access, self.record, public_url)
        self.app = Starlette(
            routes=[WebSocketRoute("/_stcore/stream", stream), Route("/metrics", metrics),
                 Route("/api/v1/store/read", store, methods=["POST"]), Route("/{path:path}", who)],
            middleware=[Middleware(AllowedHosts, names), signed],
        )  # fmt: skip

    async def record(self, *entry):
        """Keep an entry of the audit log."""
        self.log.append(entry)

    def get(self, path, headers=(), peer=PROXY, host=HOST, method="GET"):
        """Return the answer to a request of a peer."""
        named, url = [("Host", host), *headers], f"http://{HOST}"
        return ask(self.app, path, method=method, peer=peer, base_url=url, headers=named)

    def connect(self, headers=(), peer=PROXY, host=HOST):
        """Return what a WebSocket of a peer is sent, which sends nothing itself."""
        sent = []
        lines = [("host", host), *headers]
        scope = {
            "type": "websocket", "path": "/_stcore/stream", "client": peer,
            "headers": [(name.lower().encode(), text.encode() if isinstance(text, str) else text)
                        for name, text in lines],
        }  # fmt: skip

        async def talk():
            asked = iter([{"type": "websocket.connect"}])

            async def receive():
                return next(asked, None) or await asyncio.Event().wait()

            async def send(message):
                sent.append(message)

            await self.app(scope, receive, send)

        asyncio.run(talk())
        return sent


@pytest.fixture
def site(people_sign_in):  # noqa: ARG001 -- through a proxy
    return Site(ACCESS, ("goodput.example.org", "127.0.0.1"))


def test_a_member_named_by_the_proxy_is_let_in(site):
    hops = "6.6.6.6, 192.0.2.9, 10.0.0.8"
    headers = [
        ("X-Forwarded-User", "bob"), ("X-Forwarded-Groups", "ops, ml"), ("X-Forwarded-For", hops),
    ]  # fmt: skip

    name, roles, teams, address, _ = site.get("/data", headers).json()

    assert (name, roles, teams, address) == ("bob", ["viewer"], ["nlp"], "192.0.2.9")
    site.get("/data", headers)
    assert site.log == [("bob", "sign in", None, "192.0.2.9")]  # once a session


PATHS = (
    *("/", "/findings", "/media/a.csv", "/_stcore/upload_file/a/b", "/_stcore/metrics"),
    *("/component/a", "/static/a.js", "/_stcore/host-config", "/api/v1/store/read"),
    *("/auth/login", "/sign-in", "/_stcore/agent/openapi.json", "//healthz", "/healthz/"),
)


@each(("https://h.test", True), ("http://h.test", False), (None, False))
def test_cookies_are_for_tls_alone_where_the_site_has_it(public_url, is_secure):
    answer = Site(ACCESS, None, public_url).get("/", ADA)
    assert ("; Secure" in answer.headers["set-cookie"]) == is_secure


@each(
    (PROXY, []), (STRANGER, ADA), (("testclient", 1), ADA),
    (PROXY, [*ADA, ("x-forwarded-user", "eve")]), (PROXY, [*ADA, *ADA]),
    (PROXY, [("X-Forwarded-User", b"ad\xe9")]), (PROXY, [("X-Forwarded-User", "")]),
    (PROXY, [("X-Forwarded-User", "ada\tx")]), (PROXY, [("X-Forwarded-User", "eve")]),
    (PROXY, [("X-Forwarded-User", "eve"), ("X-Forwarded-Groups", b"ml\xff")]),
    (PROXY, [("X-Forwarded_User", "ada")]), (PROXY, [(current.HEADER, current.packed(LOCAL))]),
)  # fmt: skip
def test_anybody_else_gets_nothing(site, peer, headers):
    for path in PATHS:
        answer = site.get(path, headers, peer)
        assert answer.status_code == 403, path
        assert answer.headers["cache-control"] == "no-store"
    assert [message["type"] for message in site.connect(headers, peer)] == ["websocket.close"]


@pytest.mark.usefixtures("site")
def test_a_name_in_another_script_is_a_name():
    proxy = {"proxy": ACCESS.proxy, "sign_in": "proxy", "hosts": ("a",)}
    named = [("X-Forwarded-User", "Zoë Łukasz".encode())]
    answer = Site(AccessSettings(**proxy, default_role="viewer"), None).get("/", named)
    assert answer.json()[0] == "Zoë Łukasz"


def test_without_a_sign_in_everybody_is_local():
    answer = Site(AccessSettings(), None).get("/", ADA, host="any.test")
    assert answer.json()[:2] == ["local", ["admin"]]


def test_who_is_no_member_reads_why(site):
    answer = site.get("/", [("X-Forwarded-User", "<b>eve</b>")])
    assert "signed in as &lt;b&gt;eve&lt;/b&gt;, but nothing lets you in" in answer.text
    assert site.log == [("<b>eve</b>", "refused", "not a member", "10.0.0.7")]


def test_an_identity_of_a_request_is_replaced(site):
    forged = [*ADA, (current.HEADER, "eve"), (current.ADDRESS_HEADER, "1.2.3.4")]

    name, *_, address, seen = site.get("/", forged).json()

    assert (name, address, seen[current.ADDRESS_HEADER.lower()]) == ("ada", "10.0.0.7", "10.0.0.7")
    assert current.unpacked(seen[current.HEADER.lower()]).name == "ada"


def test_a_websocket_knows_its_person_and_ends_with_the_session(site, monkeypatch):
    clock = itertools.chain([0.0, 0.0], itertools.repeat(12 * 3600.0))
    monkeypatch.setattr(sign_in, "now_s", lambda: next(clock))

    accepted, said, closed = site.connect([*ADA, ("Origin", f"https://{HOST}")], host="127.0.0.1:1")

    assert accepted["type"] == "websocket.accept"
    assert said["text"] == f'["ada","{HOST}"]'  # the host of its page, as Streamlit compares them
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)


@each(
    *((host, None, 200) for host in (HOST, "GOODPUT.example.org.:443", "127.0.0.1:8501",
        "127.0.0.2:8501", "[::1]:8501")),
    (HOST, f"https://{HOST}", 200),
    ("127.0.0.1:8501", f"https://{HOST}", 200),
    ("127.0.0.1:8501", "http://127.0.0.1:8501", 200),
    *((host, None, 421) for host in ("rebound.example.org", f"{HOST}.evil.test",
        "127.0.0.1.evil.test", f"{HOST}@evil.test", "")),
    ("127.0.0.1:8501", "http://127.0.0.1:3000", 403),
    ("127.0.0.1:8501", "http://localhost:8501", 403),
    ("127.0.0.1:8501", "https://evil.test", 403),
    (HOST, "null", 403),
    (HOST, "file://", 403),
)  # fmt: skip
def test_other_hosts_and_foreign_origins_are_refused(site, host, origin, status):
    headers = [*ADA] if origin is None else [*ADA, ("Origin", origin)]

    assert site.get("/", headers, host=host).status_code == status
    if status != 200:
        (refused,) = site.connect(headers, host=host)
        assert refused["type"] == "websocket.close"


HERE, OTHER = ("127.0.0.1", 1), ("10.0.0.7", 1)
PROGRAM, OF_TEAM = "goodput_program", "goodput_of_a_team"
OF_NLP = (Member(person="ada", teams=("nlp",)),)
TOKENS = (
    Token(name="prometheus", sha256=digest(PROGRAM)),
    Token(name="nlp", sha256=digest(OF_TEAM), teams=("nlp",)),
)
BY_PROXY = AccessSettings(sign_in="proxy", hosts=("h.test",), members=OF_NLP, tokens=TOKENS)
ELSEWHERE = AccessSettings(
    sign_in="proxy", hosts=("h.test",), members=OF_NLP, tokens=TOKENS,
    proxy=ProxySettings(name_header="X-User", addresses=("10.0.0.0/24",)),
)  # fmt: skip
BY_OIDC = AccessSettings(
    sign_in="oidc", members=OF_NLP, tokens=TOKENS,
    oidc=OidcSettings(issuer="https://id.test", client_id="c", client_secret_env="A",
                      cookie_secret_env="COOKIE", redirect_uri="https://h.test/oauth2callback"),
)  # fmt: skip


def asked(access, headers, peer=HERE, path="/metrics", method="GET"):
    """Return the answer to a request under the loopback name, as nginx passes it on."""
    site = Site(access, access.names(is_loopback=True))
    return site.get(path, headers.items(), peer, "127.0.0.1:8501", method)


@pytest.fixture
def secrets(monkeypatch):
    """Set the secret that signs cookies."""
    monkeypatch.setenv("A", "a")
    monkeypatch.setenv("COOKIE", "c" * 32)


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
    (ELSEWHERE, {"Authorization": f"Bearer {OF_TEAM}"}, HERE, 403),
    (ELSEWHERE, {}, OTHER, 403),
    (ELSEWHERE, {"X-User": "ada"}, OTHER, 403),  # a trusted proxy elsewhere
    *((access, {"Authorization": f"Bearer {token}", "X-User": "ada"}, HERE, status)
      for access in (BY_PROXY, BY_OIDC, ELSEWHERE) for token, status in OF_TOKENS.items()),
]  # fmt: skip


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(("access", "headers", "peer", "status"), ASKED)
def test_metrics_are_for_this_machine_and_tokens_of_all_teams(access, headers, peer, status):
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
