"""Answers of the last seconds: who asks the same gets them, and each is made once at a time.

Panels of several viewers ask the same again and again. A key names the question, the rows that the
person sees and the commit, so that nobody gets what is older, or what is for others.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from starlette.responses import Response

KEPT_S = 10.0  # a select may ask for the time, or for chance
KEPT_MAX_BYTES, ONE_MAX_BYTES = 64 << 20, 8 << 20
OK = 200


@dataclass(frozen=True)
class Question:
    """What is answered once for all who ask it now; make runs in a thread."""

    key: Hashable
    make: Callable[[], Response]


class Answers:
    """Answers by their keys; of one event loop."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[float, Response]] = OrderedDict()
        self._bytes = 0
        self._making: dict[Hashable, asyncio.Task[Response]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Response]]) -> Response:
        """Return the answer of a key: a kept one, the one that is being made, or a new one."""
        self._forget()
        if key in self._kept:
            return _copy(self._kept[key][1])
        if (making := self._making.get(key)) is None:
            making = self._making[key] = asyncio.create_task(self._made(key, make))
        return _copy(await asyncio.shield(making))  # who goes away stops it for nobody else

    async def _made(self, key: Hashable, make: Callable[[], Awaitable[Response]]) -> Response:
        try:
            answer = await make()
        finally:
            del self._making[key]
        if answer.status_code == OK and len(answer.body) <= ONE_MAX_BYTES:
            self._kept[key] = time.monotonic() + KEPT_S, answer
            self._bytes += len(answer.body)
        return answer

    def _forget(self) -> None:
        """Drop what is too old, and the oldest where all take too much."""
        now = time.monotonic()
        while self._kept:
            until, answer = next(iter(self._kept.values()))
            if until > now and self._bytes <= KEPT_MAX_BYTES:
                return
            self._kept.popitem(last=False)
            self._bytes -= len(answer.body)


def _copy(answer: Response) -> Response:
    """Return an answer that a response's own middleware may change."""
    return Response(bytes(answer.body), answer.status_code, dict(answer.headers))
