"""Static files of the dashboard over the wire: compressed once, as the browser takes it."""

import asyncio

import pyarrow as pa
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from tests.app.served import ask
from tests.tables import each

from goodput_app.server.compressed_assets import CompressedAssets

PATH, GZIP = "/goodput/static/js/index.abc.js", {"Accept-Encoding": "gzip"}
UVICORN = {"version": "3.0", "spec_version": "2.3"}  # an answer ends where its client leaves
SCRIPT = "export const answer = 42; // " + "a" * 10_000


@pytest.fixture
def app(tmp_path):
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "index.abc.js").write_text(SCRIPT)
    (tmp_path / "font.woff2").write_bytes(b"\0" * 1000)
    return Starlette(
        routes=[
            Mount("/goodput/static", StaticFiles(directory=tmp_path)),
            Route("/goodput/metrics.js", lambda _request: PlainTextResponse(SCRIPT)),
        ],
        middleware=[Middleware(CompressedAssets, "goodput")],
    )


def get(app, path, **headers):
    return ask(app, path, headers=headers)


def text_of(answer):
    """Return the text of an answer: the client decodes gzip itself, and knows no brotli."""
    if answer.headers["content-encoding"] == "gzip":
        return answer.text
    return pa.Codec("brotli").decompress(answer.content, len(SCRIPT), asbytes=True).decode()


@each(("gzip, deflate, br, zstd", "br"), ("gzip, deflate", "gzip"))
def test_a_script_is_compressed(app, accepted, coding):
    answer = get(app, PATH, **{"Accept-Encoding": accepted})

    assert text_of(answer) == SCRIPT
    assert answer.headers["content-encoding"] == coding
    assert answer.headers["vary"].lower() == "accept-encoding"
    assert int(answer.headers["content-length"]) < len(SCRIPT) / 50


def test_a_file_is_compressed_once(app, tmp_path):
    first = get(app, PATH, **GZIP)
    (tmp_path / "js" / "index.abc.js").unlink()

    assert get(app, PATH, **GZIP).text == first.text


def test_a_file_whose_first_client_left_is_whole_for_the_next(app):
    headers = [(b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "path": PATH, "headers": headers, "asgi": UVICORN}

    async def gone():
        return {"type": "http.disconnect"}

    async def drop(_message):
        pass

    asyncio.run(app(scope, gone, drop))

    assert get(app, PATH, **GZIP).text == SCRIPT


@each(
    {
        "takes no gzip": ("static/js/index.abc.js", {"Accept-Encoding": "identity"}, 200),
        "a part": ("static/js/index.abc.js", {**GZIP, "Range": "bytes=0-9"}, 206),
        "compressed already": ("static/font.woff2", GZIP, 200),
        "no static file": ("metrics.js", GZIP, 200),
        "no such file": ("static/js/none.js", GZIP, 404),
    }
)
def test_other_answers_are_as_they_were(app, path, asked, status):
    answer = get(app, f"/goodput/{path}", **asked)

    assert answer.status_code == status
    assert "content-encoding" not in answer.headers
    assert status != 206 or answer.text == SCRIPT[:10]
