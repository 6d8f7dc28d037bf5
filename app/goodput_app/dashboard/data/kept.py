"""Answers of pages that are kept, and debited to who has them evaluated.

Who has taken as much as they may gets the last answers to the same questions in place of new ones.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import polars as pl
import streamlit as st

from goodput_app.process import usage
from goodput_queries.scope import Scope

ALIKE_MS = 300_000  # windows whose ends differ by less follow the clock: one replaces the other
LAST_MAX = 1_000  # questions whose last answer is known
STATE = "state"

Found = TypeVar("Found")

refusal: ContextVar[usage.BusyError | None] = ContextVar("refusal", default=None)
_last: OrderedDict[Hashable, list[tuple[Any, ...]]] = OrderedDict()
_lock = threading.Lock()


def kept(
    max_entries: int, spinner: str | bool = False
) -> Callable[[Callable[..., Found]], Callable[..., Found]]:
    """Keep the answers of a function by its arguments, of which `state` is the database's.

    What is kept is given to everybody; what is evaluated is debited. Raises BusyError where that is
    refused and nothing was evaluated before. `refusal` says why a last answer was given, or none.
    """

    def kept_of(evaluate: Callable[..., Found]) -> Callable[..., Found]:
        @wraps(evaluate)
        def debited(*given: Any) -> Found:
            account = usage.account()
            account.refuse_spent()
            with account.evaluating():
                found = evaluate(*given)
            account.debit(rows=found.height if isinstance(found, pl.DataFrame) else 0)
            return found

        cached = st.cache_data(max_entries=max_entries, show_spinner=spinner)(debited)
        names = [*signature(evaluate).parameters]
        place = names.index(STATE) if STATE in names else len(names)

        @wraps(evaluate)
        def asked(*given: Any) -> Found:
            question = evaluate, *map(_timeless, (*given[:place], *given[place + 1 :]))
            try:
                found = cached(*given)
            except usage.BusyError as error:
                refusal.set(error)
                with _lock:
                    known = _last.get(question, ())
                    last = next((one for one in known if _are_alike(one, given)), None)
                if last is None or last == given:
                    raise
                return cached(*last)
            with _lock:
                known = _last.pop(question, [])
                _last[question] = [given, *(one for one in known[:3] if not _are_alike(one, given))]
                if len(_last) > LAST_MAX:
                    _last.popitem(last=False)
            return found

        return asked

    return kept_of


def is_refused() -> bool:
    """Return whether who asks may have nothing evaluated now; `refusal` then says why."""
    try:
        usage.account().refuse_spent()
    except usage.BusyError as error:
        refusal.set(error)
        return True
    return False


def is_alike(one: Scope, other: Scope) -> bool:
    """Say whether two scopes differ by a few minutes of when their windows end, at most."""
    if replace(one, from_ms=other.from_ms, to_ms=other.to_ms) != other:
        return False
    ends = ((one.from_ms, other.from_ms), (one.to_ms, other.to_ms))
    return all(
        a == b or (a is not None and b is not None and abs(a - b) < ALIKE_MS) for a, b in ends
    )


def _are_alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(is_alike(a, b) for a, b in pairs if isinstance(a, Scope))


def _timeless(given: Any) -> Any:
    return replace(given, from_ms=None, to_ms=None) if isinstance(given, Scope) else given
