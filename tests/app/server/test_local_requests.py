"""Where people sign in, nothing that a proxy may have passed on counts as local."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import shutil
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from goodput_app.access.settings import AccessSettings, Member, OidcSettings, ProxySettings, Token
from goodput_app.server import metrics_access
from goodput_app.server.allowed_hosts import AllowedHosts
from goodput_app.server.local_request import may_be_local
from goodput_app.server.sign_in import SignIn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.requests import Request

NGINX = shutil.which("nginx")
HERE, OTHER = ("127.0.0.1", 1), ("10.0.0.7", 1)
PROGRAM, OF_TEAM = "goodput_program", "goodput_of_a_team"
MEMBERS = (Member(person="ada", teams=("nlp",)),)


def sha(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


TOKENS = (
    Token(name="prometheus", sha256=sha(PROGRAM)),
    Token(name="nlp", sha256=sha(OF_TEAM), teams=("nlp",)),
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


def site(access: AccessSettings) -> Starlette:
    """Return an application whose `/metrics` has the figures of all teams."""

    def metrics(request: Request) -> Any:
        return metrics_access.refusal(request, access) or JSONResponse("all teams")

    def store(request: Request) -> JSONResponse:
        return JSONResponse(may_be_local(request, access))

    async def audit(*_: Any) -> None: ...

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/api/v1/store/read", store, methods=["POST"]),
        ],
        middleware=[
            Middleware(AllowedHosts, access.names(is_loopback=True)),
            Middleware(SignIn, access, audit),
        ],
    )


def ask(
    access: AccessSettings,
    headers: dict[str, str],
    peer: tuple[str, int] = HERE,
    call: tuple[str, str] = ("GET", "/metrics"),
) -> httpx.Response:
    """Return the answer to a request under the loopback name, as nginx passes it on."""

    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(site(access), client=peer)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8501"
        ) as client:
            return await client.request(*call, headers=headers)

    return asyncio.run(answer())


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the secret that signs cookies."""
    monkeypatch.setenv("A", "a")
    monkeypatch.setenv("COOKIE", "c" * 32)


@pytest.mark.parametrize("access", [BY_PROXY, BY_OIDC])
@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-User": "ada"}, {"X-Real-IP": "192.0.2.1"}])
def test_a_loopback_proxy_gets_no_metrics_without_a_token(
    access: AccessSettings, headers: dict[str, str]
) -> None:
    assert ask(access, headers).status_code == 403


def test_a_request_with_the_configured_name_header_is_not_local() -> None:
    assert ask(ELSEWHERE, {}).json() == "all teams"
    assert ask(ELSEWHERE, {"x-user": "ada"}).status_code == 403
    assert ask(ELSEWHERE, {"X-Forwarded-Groups": "ml"}).status_code == 403


def test_a_request_of_a_trusted_proxy_is_not_local() -> None:
    assert ask(ELSEWHERE, {}, OTHER).status_code == 403


@pytest.mark.parametrize("access", [BY_PROXY, BY_OIDC, ELSEWHERE])
@pytest.mark.parametrize(
    ("token", "status"), [(PROGRAM, 200), (OF_TEAM, 403), ("goodput_unknown", 401), ("x", 401)]
)
def test_metrics_are_for_tokens_that_see_all_teams(
    access: AccessSettings, token: str, status: int
) -> None:
    headers = {"Authorization": f"Bearer {token}", "X-User": "ada"}

    assert ask(access, headers).status_code == status


def test_calls_of_the_store_that_name_a_person_are_not_local() -> None:
    call = ("POST", "/api/v1/store/read")

    assert ask(BY_PROXY, {}, call=call).json() is True
    assert ask(BY_PROXY, {"X-Forwarded-User": "ada"}, call=call).json() is False
    assert ask(ELSEWHERE, {"X-User": "ada"}, call=call).json() is False


CONFIG = """
daemon off; pid {folder}/pid; error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{behind};
      proxy_set_header X-Forwarded-User ada;
    }}
    location /silent/ {{ proxy_pass http://127.0.0.1:{behind}/; }}
  }}
}}
"""


def _free() -> socket.socket:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    return listening


@pytest.fixture
def behind_nginx(tmp_path: Path) -> Iterator[str]:
    """Give the URL of an nginx with its default headers before a site that a proxy signs in."""
    ours, theirs = _free(), _free()
    port = theirs.getsockname()[1]
    theirs.close()
    server = uvicorn.Server(uvicorn.Config(site(BY_PROXY), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [ours]})
    thread.start()
    settings = tmp_path / "nginx.conf"
    settings.write_text(CONFIG.format(folder=tmp_path, port=port, behind=ours.getsockname()[1]))
    process = subprocess.Popen([str(NGINX), "-c", str(settings), "-p", str(tmp_path)])
    try:
        yield _answering(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait()
        server.should_exit = True
        thread.join()
        ours.close()


def _answering(url: str) -> str:
    """Return a URL once something answers there."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/metrics").status_code != 502:
                return url
        threading.Event().wait(0.05)
    raise AssertionError("nginx does not answer")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_nginx_with_its_default_headers_gets_no_metrics(behind_nginx: str) -> None:
    token = {"Authorization": f"Bearer {PROGRAM}"}

    assert httpx.get(f"{behind_nginx}/metrics").status_code == 403
    assert httpx.get(f"{behind_nginx}/silent/metrics").status_code == 403
    assert httpx.get(f"{behind_nginx}/metrics", headers=token).status_code == 200
