"""The page around the dashboard, and all of it below a path of its proxy: as at the root."""

from urllib.parse import urljoin

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from tests.app.access.test_access_settings import OIDC
from tests.app.served import ask
from tests.app.server.conftest import unrecorded
from tests.tables import each, gives

from goodput_app import settings
from goodput_app.access.settings import AccessSettings, Member, ProxySettings
from goodput_app.cli.notify import notification_plan
from goodput_app.server.allowed_hosts import AllowedHosts
from goodput_app.server.base_path import BasePath
from goodput_app.server.index_page import SCRIPT, IndexPage
from goodput_app.server.sign_in import SignIn
from goodput_messages.message import finding_url

OF_A_BROWSER = {"Accept": "text/html", "X-Forwarded-User": "ada"}
ACCESS = AccessSettings(
    sign_in="proxy", hosts=("h.test",), members=(Member(person="ada"),),
    proxy=ProxySettings(addresses=("127.0.0.1/32",)),
)  # fmt: skip
PAGE = '<html><head></head><div id="root"></div></html>'


def site(path, *, of_streamlit=False):
    """Return pages and calls below a path, which a proxy signs people in to."""

    def where(request):
        return JSONResponse(request.url.path)

    async def stream(socket):
        await socket.accept()
        await socket.send_json(socket.url.path)

    return Starlette(
        routes=[WebSocketRoute("/_stcore/stream", stream), Route("/healthz", where),
                Route("/api/v1/views", where), Route("/goodput/findings", where),
                Route("/{page:path}", lambda _: HTMLResponse(PAGE))],
        middleware=[Middleware(BasePath, path, of_streamlit=of_streamlit),
                    Middleware(AllowedHosts, ("h.test",)), Middleware(SignIn, ACCESS, unrecorded),
                    Middleware(IndexPage)],
    )  # fmt: skip


def asked(path, base="/goodput", **kwargs):
    return ask(site(base, **kwargs), path, base_url="http://h.test", headers=OF_A_BROWSER)


@pytest.mark.parametrize("path", ["/goodput/", "/goodput/fleet", "/", "/fleet", "/goodputs"])
def test_a_page_answers_with_the_path_and_where_the_proxy_removed_it(path):
    answer = asked(path)
    assert answer.status_code == 200
    assert SCRIPT.decode() in answer.text


@each(
    ("/goodput", "/goodput", 307),
    ("/a/goodput", "/a/goodput", 307),
    ("/goodput", "/goodput/sign-in", 302),  # of a page that was wanted before the sign-in
)
def test_without_its_last_slash_and_after_the_sign_in_it_leads_to_the_dashboard(base, path, code):
    answer = asked(path, base)
    assert answer.status_code == code
    assert urljoin(f"http://h.test{path}", answer.headers["location"]) == f"http://h.test{base}/"


@each(
    *((f"{base}{path}", False, path)
      for base in ("/goodput", "") for path in ("/healthz", "/api/v1/views")),
    ("/goodput/api/v1/views", True, "/api/v1/views"),
    ("/goodput/findings", True, "/goodput/findings"),  # of its own pages below the path
    ("/goodput/healthz", True, None),  # an unknown page: only the API answers there
)  # fmt: skip
def test_calls_answer_below_the_path_also_where_streamlit_signs_people_in(path, of_streamlit, at):
    answer = asked(path, of_streamlit=of_streamlit)
    is_call = answer.headers.get("content-type") == "application/json"
    assert (answer.json() if is_call else None) == at


@pytest.mark.parametrize("path", ["/goodput/_stcore/stream", "/_stcore/stream"])
def test_a_stream_of_a_page_is_open_below_the_path(path):
    client = TestClient(site("/goodput"), client=("127.0.0.1", 1))
    with client.websocket_connect(path, headers={"Host": "h.test", **OF_A_BROWSER}) as stream:
        assert stream.receive_json() == "/_stcore/stream"


def test_below_the_path_nothing_is_open_that_is_not_at_the_root():
    answer = ask(site("/goodput"), "/goodput/api/v1/views", base_url="http://h.test")
    assert answer.status_code == 403


@each({"public_url": '[serve]\npublic_url = "https://hpc.example.org/goodput/"', "oidc": OIDC})
def test_the_settings_name_path_and_links(tmp_path, text):
    (tmp_path / "goodput.toml").write_text(text)

    found = settings.read(tmp_path / "goodput.toml")

    assert found.base_path == "/goodput"
    assert "hpc.example.org" in found.access.names(is_loopback=True, public_url=found.public_url)
    assert finding_url(notification_plan(found).public_url, "k", 0, 1).startswith(
        "https://hpc.example.org/goodput/findings?"
    )


LONG_PAGE = f'<html><head><title>x</title></head><div id="root">{"x" * 1000}</div></html>'
STATEMENT = LONG_PAGE.replace("root", "statement")
PACKED = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"}


def answered(path, headers, base_path=""):
    """Ask an application with a page, a missing one and a text, which packs its answers."""
    routes = [
        Route("/findings", lambda _: HTMLResponse(LONG_PAGE, headers={"ETag": "1"})),
        Route("/old/deep/fin dings", lambda _: HTMLResponse(LONG_PAGE)),
        Route("/media/a.html", lambda _: HTMLResponse(STATEMENT)),
        Route("/missing", lambda _: HTMLResponse(LONG_PAGE, status_code=404)),
        Route("/metrics", lambda _: PlainTextResponse(LONG_PAGE)),
    ]
    packs = Middleware(GZipMiddleware, minimum_size=10)
    app = Starlette(routes=routes, middleware=[Middleware(IndexPage, base_path), packs])
    return ask(app, path, headers=headers)


def test_a_page_says_where_its_server_is_before_any_other_script_and_leads_from_deeper_ones():
    answer = answered("/findings", PACKED)
    assert answer.text == LONG_PAGE.replace("<head>", f"<head>{SCRIPT.decode()}")
    assert "etag" not in answer.headers  # it is of the page without the script
    deeper = answered("/old/deep/fin%20dings", PACKED)
    assert (deeper.status_code, deeper.headers["location"]) == (307, "../../fin%20dings")
    program = answered("/findings", {"Accept": "*/*", "Accept-Encoding": "gzip"})
    assert program.text == LONG_PAGE, "no browser opens it"
    assert (program.headers["etag"], program.headers["content-encoding"]) == ("1", "gzip")


test_what_is_no_page_stays_as_it_is = gives(
    lambda path: answered(path, PACKED).text,
    ("/media/a.html", STATEMENT), ("/missing", LONG_PAGE), ("/metrics", LONG_PAGE),
)  # fmt: skip
