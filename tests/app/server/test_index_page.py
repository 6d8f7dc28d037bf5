"""The web page around the dashboard: it says where its server is; other answers stay as they are."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from goodput_app.server.index_page import SCRIPT, IndexPage

PAGE = f"<html><head><title>x</title></head>{'x' * 1000}</html>"
OF_A_BROWSER = {"Accept": "text/html,*/*;q=0.8", "Accept-Encoding": "gzip"}


@pytest.fixture
def client() -> TestClient:
    """Give an application with a page, a missing one and a text, which packs its answers."""
    routes = [
        Route("/findings", lambda _: HTMLResponse(PAGE, headers={"ETag": "1"})),
        Route("/missing", lambda _: HTMLResponse(PAGE, status_code=404)),
        Route("/metrics", lambda _: PlainTextResponse(PAGE)),
    ]
    packs = Middleware(GZipMiddleware, minimum_size=10)
    return TestClient(Starlette(routes=routes, middleware=[Middleware(IndexPage), packs]))


def test_a_page_says_where_its_server_is_before_any_other_script(client: TestClient) -> None:
    answer = client.get("/findings", headers=OF_A_BROWSER)
    assert answer.text == PAGE.replace("<head>", f"<head>{SCRIPT.decode()}")
    assert "etag" not in answer.headers  # it is of the page without the script


@pytest.mark.parametrize("path", ["/missing", "/metrics"])
def test_what_is_no_page_stays_as_it_is(client: TestClient, path: str) -> None:
    assert client.get(path, headers=OF_A_BROWSER).text == PAGE


def test_what_no_browser_opens_stays_as_it_is(client: TestClient) -> None:
    answer = client.get("/findings", headers={"Accept": "*/*", "Accept-Encoding": "gzip"})
    assert answer.text == PAGE
    assert answer.headers["etag"] == "1"
    assert answer.headers["content-encoding"] == "gzip"
