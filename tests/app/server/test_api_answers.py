"""How long an answer of `/api/v1` is given again, by what it took to make and what was loaded."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.responses import Response
from tests.tables import each

from goodput_app.server.api import answers
from goodput_app.server.api.answers import Answers, Question

FINE = (200, 200)


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
        kept = Answers()
        await kept.get(Question("runs", "as before", lambda: None), make)
        clock.s += after_s
        answer = await kept.get(Question("runs", state, lambda: None), make)
        await asyncio.sleep(0)  # what is made meanwhile begins
        return answer

    answer = asyncio.run(asked_twice())

    assert (answer.body.decode(), 2 - len(answers_left)) == (given, made)
    assert answer.status_code == statuses[given == "second"]
    assert answer.headers["Age"] == ("0" if given == "second" else str(int(after_s)))


@each((59.0, "old"), (60.0, "new"))
def test_who_asks_while_a_new_one_is_made_gets_the_old_one(clock, age_s, given):
    async def several():
        kept, is_made = Answers(), asyncio.Event()
        asked = Question("runs", 1, lambda: None)

        async def make(content="new"):
            await is_made.wait()
            return Response(content)

        is_made.set()
        await kept.get(asked, lambda: make("old"))
        is_made.clear()
        clock.s += age_s
        waiting = asyncio.create_task(kept.get(Question("runs", 2, lambda: None), make))
        await asyncio.sleep(0)
        other = asyncio.create_task(kept.get(Question("runs", 2, lambda: None), make))
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

        await kept.get(Question(name, 1, lambda: None), make)

    async def several():
        for name in ("a", "b", "a", "c", "b", "a"):
            await ask(name)

    kept = Answers()
    asyncio.run(several())

    assert made == ["a", "b", "c", "a"]
