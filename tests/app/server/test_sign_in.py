"""Nothing is given before somebody signed in: hosts, origins, headers of a trusted proxy."""

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
from tests.tables import each

from goodput_app.access import current
from goodput_app.access.identity import LOCAL
from goodput_app.access.settings import AccessSettings, Member, ProxySettings
from goodput_app.server import sign_in
from goodput_app.server.allowed_hosts import AllowedHosts
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
    seen = {
        name.lower(): value for name, value in request.headers.items() if name.startswith("x-good")
    }
    teams = None if identity.teams is None else sorted(identity.teams)
    return JSONResponse(
        [identity.name, sorted(identity.roles), teams, current.current_address(), seen]
    )


async def stream(socket):
    await socket.accept()
    found = current.unpacked(socket.headers[current.HEADER])
    await socket.send_json([found.name, socket.headers["host"]])
    with contextlib.suppress(WebSocketDisconnect):
        await socket.receive_bytes()


class Site:
    """An application behind the check, and what it records."""

    def __init__(self, access, names):
        self.log = []
        self.app = Starlette(
            routes=[
                WebSocketRoute("/_stcore/stream", stream),
                Route("/{path:path}", who, methods=["GET", "POST"]),
            ],
            middleware=[Middleware(AllowedHosts, names), Middleware(SignIn, access, self.record)],
        )

    async def record(self, *entry):
        """Keep an entry of the audit log."""
        self.log.append(entry)

    def get(self, path, headers=(), peer=PROXY, host=HOST):
        """Return the answer to a request of a peer."""
        named = [("Host", host), *headers]
        return ask(self.app, path, peer=peer, base_url=f"http://{HOST}", headers=named)

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
        ("X-Forwarded-User", "bob"),
        ("X-Forwarded-Groups", "ops, ml"),
        ("X-Forwarded-For", hops),
    ]

    name, roles, teams, address, _ = site.get("/data", headers).json()

    assert (name, roles, teams, address) == ("bob", ["viewer"], ["nlp"], "192.0.2.9")
    site.get("/data", headers)
    assert site.log == [("bob", "sign in", None, "192.0.2.9")]  # once a session


PATHS = (
    *("/", "/findings", "/media/a.csv", "/_stcore/upload_file/a/b", "/_stcore/metrics"),
    *("/component/a", "/static/a.js", "/_stcore/host-config", "/api/v1/store/read"),
    *("/auth/login", "/sign-in", "/_stcore/agent/openapi.json", "//healthz", "/healthz/"),
)


@each(
    (PROXY, []),
    (STRANGER, ADA),
    (("testclient", 1), ADA),
    (PROXY, [*ADA, ("x-forwarded-user", "eve")]),
    (PROXY, [*ADA, *ADA]),
    (PROXY, [("X-Forwarded-User", b"ad\xe9")]),
    (PROXY, [("X-Forwarded-User", "")]),
    (PROXY, [("X-Forwarded-User", "ada\tx")]),
    (PROXY, [("X-Forwarded-User", "eve")]),
    (PROXY, [("X-Forwarded-User", "eve"), ("X-Forwarded-Groups", b"ml\xff")]),
    (PROXY, [("X-Forwarded_User", "ada")]),
    (PROXY, [(current.HEADER, current.packed(LOCAL))]),
)
def test_anybody_else_gets_nothing(site, peer, headers):
    for path in PATHS:
        answer = site.get(path, headers, peer)
        assert answer.status_code == 403, path
        assert answer.headers["cache-control"] == "no-store"
    assert [message["type"] for message in site.connect(headers, peer)] == ["websocket.close"]


@pytest.mark.usefixtures("site")
def test_a_name_in_another_script_is_a_name():
    access = AccessSettings(
        default_role="viewer", proxy=ACCESS.proxy, sign_in="proxy", hosts=("a",)
    )
    named = [("X-Forwarded-User", "Zoë Łukasz".encode())]

    assert Site(access, None).get("/", named).json()[0] == "Zoë Łukasz"


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


def test_without_a_sign_in_everybody_is_local():
    name, roles, *_ = Site(AccessSettings(), None).get("/", ADA, host="any.test").json()

    assert (name, roles) == ("local", ["admin"])
