"""Answers of the last seconds: who asks the same gets them, and each is made once at a time.

Panels of several viewers ask the same again and again, while sources are polled and each poll
changes the database. So an answer is given for some time after it has changed: for LASTS times as
long as it took to make, as long again while a new one is made, and up to OLD_MAX_S while the new
one takes longer. What is cheap is as good as new, and what is costly takes a tenth of a core,
however many ask and however often rows come. A key names the question and the rows that the person
sees, so that nobody gets what is for others.
"""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass

from starlette.responses import Response

KEPT_S = 10.0  # where nothing has changed: a select may ask for the time, or for chance
LASTS = 10
CHANGED_MAX_S = 15.0  # and as long again until who asks next waits for a new one
OLD_MAX_S = 60.0  # while others wait for it
KEPT_MAX_BYTES, ONE_MAX_BYTES = 64 << 20, 8 << 20
KNOWN_S, KNOWN_MAX = 10.0, 200  # requests whose question is known
OK, BUSY = 200, 429


@dataclass(frozen=True)
class Question:
    """What is answered once for all who ask it now; make runs in a thread.

    make_new: give none that was made for others. is_fixed: for seconds, the same request asks it
    """

    key: Hashable
    make: Callable[[], Response]
    make_new: bool = False
    is_fixed: bool = True


@dataclass(frozen=True)
class _Kept:
    """An answer, the state of the database that it was asked of, and when it was complete."""

    answer: Response
    state: Hashable
    made_s: float
    took_s: float

    @property
    def lasts_s(self) -> float:
        return min(CHANGED_MAX_S, LASTS * self.took_s)


class Answers:
    """Answers by their keys; of one event loop."""

    def __init__(self, state: Callable[[], Hashable]) -> None:
        """Take what says in which state the database is."""
        self._state = state
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._bytes = 0
        self._making: dict[Hashable, asyncio.Task[Response]] = {}
        self._known: OrderedDict[Hashable, tuple[Hashable, float]] = OrderedDict()
        self._looked_up: set[Hashable] = set()

    @contextlib.contextmanager
    def looking_up(self, request: Hashable) -> Iterator[None]:
        """Answer the same requests at once with what is kept, for the length of a block."""
        is_first = request not in self._looked_up
        self._looked_up.add(request)
        try:
            yield
        finally:
            if is_first:
                self._looked_up.discard(request)

    def know(self, request: Hashable, asked: Question) -> None:
        """Note what a request asks: who sends the same again is answered without a thread."""
        if asked.is_fixed and not asked.make_new:
            self._known.pop(request, None)
            self._known[request] = asked.key, time.monotonic()
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)

    def at_once(self, request: Hashable) -> tuple[Response | None, bool]:
        """Return a kept answer to a request whose question is known, None where it has to wait.

        And whether it is to be asked again meanwhile, since its time is over and nobody does.
        """
        key, known_s = self._known.get(request, (None, 0.0))
        kept, now_s = self._kept.get(key), time.monotonic()
        if kept is None:
            return None, False
        age_s = now_s - kept.made_s
        is_known = now_s - known_s < KNOWN_S
        is_new = is_known and self._is_new(kept, age_s)
        is_asked = request in self._looked_up or key in self._making
        if is_new or (is_asked and age_s < OLD_MAX_S) or (is_known and age_s < 2 * kept.lasts_s):
            return _copy(kept.answer, age_s), not (is_new or is_asked)
        return None, False

    def last(self, asked: Question) -> Response | None:
        """Return a kept answer however it has changed since, None where there is none."""
        kept = None if asked.make_new else self._kept.get(asked.key)
        age_s = time.monotonic() - kept.made_s if kept else 0.0
        return _copy(kept.answer, age_s) if kept and age_s < OLD_MAX_S else None

    async def get(self, asked: Question, make: Callable[[], Awaitable[Response]]) -> Response:
        """Return a kept answer, the one that is being made, or a new one; `Age` is its seconds."""
        if asked.make_new:
            return _copy(await self._made(asked, make), 0.0)
        kept = self._kept.get(asked.key)
        age_s = time.monotonic() - kept.made_s if kept else 0.0
        if kept and self._is_new(kept, age_s):
            return _copy(kept.answer, age_s)
        making = self._making.get(asked.key)
        is_old = age_s >= (OLD_MAX_S if making else 2 * kept.lasts_s) if kept else True
        if making is None:
            making = self._making[asked.key] = asyncio.create_task(self._made(asked, make))
            making.add_done_callback(lambda _: self._making.pop(asked.key))
        if kept and not is_old:
            return _copy(kept.answer, age_s)
        made = await asyncio.shield(making)  # who goes away stops it for nobody else
        if kept and made.status_code == BUSY and age_s < OLD_MAX_S:
            return _copy(kept.answer, age_s)
        return _copy(made, 0.0)

    def _is_new(self, kept: _Kept, age_s: float) -> bool:
        return age_s < kept.lasts_s or (age_s < KEPT_S and kept.state == self._state())

    async def _made(self, asked: Question, make: Callable[[], Awaitable[Response]]) -> Response:
        began_s, state = time.monotonic(), self._state()
        answer = await make()
        if answer.status_code == OK and len(answer.body) <= ONE_MAX_BYTES:
            self._drop(asked.key)
            now_s = time.monotonic()
            self._kept[asked.key] = _Kept(answer, state, now_s, now_s - began_s)
            self._bytes += len(answer.body)
            while self._bytes > KEPT_MAX_BYTES or self._is_over(next(iter(self._kept.values()))):
                self._drop(next(iter(self._kept)))
        return answer

    @staticmethod
    def _is_over(kept: _Kept) -> bool:
        return time.monotonic() - kept.made_s > OLD_MAX_S

    def _drop(self, key: Hashable) -> None:
        if key in self._kept:
            self._bytes -= len(self._kept.pop(key).answer.body)


def _copy(answer: Response, age_s: float) -> Response:
    """Return an answer that a response's own middleware may change, with its age."""
    headers = {**answer.headers, "Age": str(int(age_s))}
    return Response(bytes(answer.body), answer.status_code, headers)
