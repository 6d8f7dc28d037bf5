"""The web page around the dashboard says where its server is; other answers stay as they are."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from tests.app.asgi import ask

from goodput_app.server.index_page import SCRIPT, IndexPage

PAGE = f'<html><head><title>x</title></head><div id="root">{"x" * 1000}</div></html>'
STATEMENT = PAGE.replace("root", "statement")
OF_A_BROWSER = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"}


def answered(path, headers, base_path=""):
    """Ask an application with a page, a missing one and a text, which packs its answers."""
    routes = [
        Route("/findings", lambda _: HTMLResponse(PAGE, headers={"ETag": "1"})),
        Route("/old/deep/fin dings", lambda _: HTMLResponse(PAGE)),
        Route("/media/a.html", lambda _: HTMLResponse(STATEMENT)),
        Route("/missing", lambda _: HTMLResponse(PAGE, status_code=404)),
        Route("/metrics", lambda _: PlainTextResponse(PAGE)),
    ]
    packs = Middleware(GZipMiddleware, minimum_size=10)
    app = Starlette(routes=routes, middleware=[Middleware(IndexPage, base_path), packs])
    return ask(app, path, headers=headers)


def test_a_page_says_where_its_server_is_before_any_other_script():
    answer = answered("/findings", OF_A_BROWSER)
    assert answer.text == PAGE.replace("<head>", f"<head>{SCRIPT.decode()}")
    assert "etag" not in answer.headers  # it is of the page without the script


def test_a_deeper_address_leads_to_the_page_of_its_last_part():
    answer = answered("/old/deep/fin%20dings", OF_A_BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (307, "../../fin%20dings")


@pytest.mark.parametrize(
    ("path", "text"), [("/media/a.html", STATEMENT), ("/missing", PAGE), ("/metrics", PAGE)]
)
def test_what_is_no_page_stays_as_it_is(path, text):
    assert answered(path, OF_A_BROWSER).text == text


def test_what_no_browser_opens_stays_as_it_is():
    answer = answered("/findings", {"Accept": "*/*", "Accept-Encoding": "gzip"})
    assert answer.text == PAGE
    assert answer.headers["etag"] == "1"
    assert answer.headers["content-encoding"] == "gzip"
