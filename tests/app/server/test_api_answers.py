"""How long an answer of `/api/v1` is given again, and before pages; static files are compressed."""

import asyncio
import itertools
import os
import sys
import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from tests.app.served import ask
from tests.tables import each

from goodput_app.process import turns
from goodput_app.server.api import answers
from goodput_app.server.api.answers import Answers, Question
from goodput_app.server.compressed_assets import CompressedAssets

FINE = (200, 200)
RUNS = Question("runs", lambda: None)


@pytest.fixture
def clock(monkeypatch):
    """Give a clock that a test sets."""
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr(answers, "time", SimpleNamespace(monotonic=lambda: now.s))
    return now


# seconds that the first answer took, and after which it is asked again; the state of the database
# then, statuses of both answers; which one is given, and how many were made
@each({
    "nothing is loaded": (1, 9.9, "as before", FINE, "first", 1),
    "its ten seconds are over": (0.1, 10, "as before", FINE, "second", 2),
    "loaded, within ten times what it took": (1, 9.9, "other", FINE, "first", 1),
    "loaded, twice as long: it is made again meanwhile": (1, 10, "other", FINE, "first", 2),
    "loaded, longer": (1, 20, "other", FINE, "second", 2),
    "loaded, and it is cheap": (0.01, 1, "other", FINE, "second", 2),
    "loaded, and it takes long: no longer than 15 s": (60, 15, "other", FINE, "first", 2),
    "it failed": (1, 0, "as before", (400, 400), "second", 2),
    "too many queries, and it is not a minute old": (0, 59, "other", (200, 429), "first", 2),
    "too many queries, and it is a minute old": (0, 60, "other", (200, 429), "second", 2),
})  # fmt: skip
def test_how_long_an_answer_is_given(clock, took_s, after_s, state, statuses, given, made):
    answers_left = [("second", statuses[1]), ("first", statuses[0])]

    async def make():
        clock.s += took_s
        return Response(*answers_left.pop())

    async def asked_twice():
        states = ["as before"]
        kept = Answers(lambda: states[-1])
        await kept.get(RUNS, make)
        clock.s += after_s
        states.append(state)
        answer = await kept.get(RUNS, make)
        await asyncio.sleep(0)  # what is made meanwhile begins
        return answer

    answer = asyncio.run(asked_twice())

    assert (answer.body.decode(), 2 - len(answers_left)) == (given, made)
    assert answer.status_code == statuses[given == "second"]
    assert answer.headers["Age"] == ("0" if given == "second" else str(int(after_s)))


# seconds that the answer took and since; the request, and one for which another waits; whether it
# is answered at once, and asked again meanwhile
@each({
    "the same request": (1, 9, "GET a", None, (True, False)),
    "another request, though it may ask the same": (1, 9, "GET b", None, (False, False)),
    "what it asks is looked up again after ten seconds": (2, 10, "GET a", None, (False, False)),
    "loaded, and twice as long as it lasts": (0.1, 1, "GET a", None, (True, True)),
    "loaded, and longer": (0.1, 2, "GET a", None, (False, False)),
    "another waits for the new one already": (0.1, 59, "GET a", "GET a", (True, False)),
    "another waits, of an answer of a minute": (0.1, 60, "GET a", "GET a", (False, False)),
})  # fmt: skip
def test_which_request_is_answered_at_once(clock, took_s, after_s, sent, other, at_once):
    async def make():
        clock.s += took_s
        return Response("rows")

    async def asked():
        kept = Answers(itertools.count().__next__)
        await kept.get(RUNS, make)
        kept.know("GET a", RUNS)
        clock.s += after_s
        with kept.looking_up(other):
            answer, is_over = kept.at_once(sent)
            return answer is not None, is_over

    assert asyncio.run(asked()) == at_once


@each((59.0, "old"), (60.0, "new"))
def test_who_asks_while_a_new_one_is_made_gets_the_old_one(clock, age_s, given):
    async def several():
        kept, is_made = Answers(itertools.count().__next__), asyncio.Event()

        async def make(content="new"):
            await is_made.wait()
            return Response(content)

        is_made.set()
        await kept.get(RUNS, lambda: make("old"))
        is_made.clear()
        clock.s += age_s
        waiting = asyncio.create_task(kept.get(RUNS, make))
        await asyncio.sleep(0)
        other = asyncio.create_task(kept.get(RUNS, make))
        await asyncio.sleep(0)
        is_made.set()
        return [(await one).body.decode() for one in (waiting, other)]

    assert asyncio.run(several()) == ["new", given]


def test_answers_take_no_more_memory_than_they_may(monkeypatch):
    monkeypatch.setattr(answers, "KEPT_MAX_BYTES", 25)
    made = []

    async def ask(name):
        async def make():
            made.append(name)
            return Response("ten  bytes")

        await kept.get(Question(name, lambda: None), make)

    async def several():
        for name in ("a", "b", "a", "c", "b", "a"):
            await ask(name)

    kept = Answers(lambda: 1)
    asyncio.run(several())

    assert made == ["a", "b", "c", "a"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities")
@each({"of a server": (True, turns.LATER_NICE), "of a command": (False, -20)})
def test_a_thread_that_evaluates_comes_after_requests(monkeypatch, is_server, lower_by):
    def drawn():
        turns.come_later()
        turns.come_later()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    begun = threading.Event()
    monkeypatch.setattr(turns, "_is_server", begun)
    if is_server:
        begun.set()

    lower = turns.with_later_threads(drawn)

    assert lower == max(os.getpriority(os.PRIO_PROCESS, 0), lower_by)


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


def test_a_file_is_compressed_once_and_whole_though_its_first_client_left(app, tmp_path):
    headers = [(b"accept-encoding", b"gzip")]
    scope = {"type": "http", "method": "GET", "path": PATH, "headers": headers, "asgi": UVICORN}

    async def gone():
        return {"type": "http.disconnect"}

    async def drop(_message):
        pass

    asyncio.run(app(scope, gone, drop))
    assert get(app, PATH, **GZIP).text == SCRIPT
    (tmp_path / "js" / "index.abc.js").unlink()
    assert get(app, PATH, **GZIP).text == SCRIPT


@each({
    "takes no gzip": ("static/js/index.abc.js", {"Accept-Encoding": "identity"}, 200),
    "a part": ("static/js/index.abc.js", {**GZIP, "Range": "bytes=0-9"}, 206),
    "compressed already": ("static/font.woff2", GZIP, 200),
    "no static file": ("metrics.js", GZIP, 200),
    "no such file": ("static/js/none.js", GZIP, 404),
})  # fmt: skip
def test_other_answers_are_as_they_were(app, path, asked, status):
    answer = get(app, f"/goodput/{path}", **asked)
    assert answer.status_code == status
    assert "content-encoding" not in answer.headers
    assert status != 206 or answer.text == SCRIPT[:10]
