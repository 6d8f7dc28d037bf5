"""Ask a select as the person who is signed in: within their rows, their turn, and recorded."""

import contextlib
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl

from goodput_app.access import audit, current, rows
from goodput_app.access.identity import LOCAL
from goodput_app.process import usage
from goodput_app.settings import settings
from goodput_app.sql_access.slots import Slots
from goodput_queries import audit as audit_log
from goodput_queries.database import Store
from goodput_queries.sandbox import select as sandbox
from goodput_queries.sandbox.limits import Limits
from goodput_queries.sandbox.select import Answer
from goodput_queries.sandbox.views import View, offered
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage.database_file import Reader

ACTION = "query"
AGAIN_AFTER_S = 3_600.0  # a panel that asks the same every minute is one entry an hour
REMEMBERED_MAX = 10_000

_asked: OrderedDict[tuple[str, str | None, str], float] = OrderedDict()
_lock = threading.Lock()


def limits() -> Limits:
    """Return what one select may take in this process."""
    given = settings().query
    return Limits(timeout_s=given.timeout_s, memory_mib=given.memory_mib, rows_max=given.rows_max)


def ask(store: Store, what: str | View, scope: Scope, rows_max: int | None = None) -> Answer:
    """Return the answer to a select, or the rows of a whole view, of the rows the person sees.

    rows_max: of the answer, at most as many as the settings allow.
    Raises QueryError for what cannot be answered, BusyError where it is not their turn.
    """
    most = limits()
    own = replace(most, rows_max=min(rows_max or most.rows_max, most.rows_max))
    scope, account = rows.limited(scope), usage.account()
    is_view = isinstance(what, View)
    with (
        turn(store, question(what)),
        account.holding(most.result_max_mib if is_view else most.memory_mib),
    ):
        if isinstance(what, View):
            answer = sandbox.whole(store, what, scope=scope, limits=own)
        else:
            answer = sandbox.select(store, what, scope=scope, limits=own, took=account.debit)
    account.debit(rows=answer.rows.height)
    return answer


def question(what: str | View) -> str:
    """Return how the audit log has a select, or the rows of a whole view."""
    return f"select * from {what.name}" if isinstance(what, View) else what


@contextlib.contextmanager
def turn(store: Store, question: str) -> Iterator[Reader]:
    """Yield the rows that the person sees for a block that answers a question, once it is recorded.

    Raises BusyError where it is not their turn.
    """
    account = usage.account()
    account.refuse_spent()
    with _slots().taken(_who()), account.evaluating():
        record(store, question)
        yield _OwnRows(store, time.monotonic() + limits().timeout_s)


@dataclass(frozen=True)
class _OwnRows:
    """A store of which the person sees the rows of their teams, until a deadline."""

    store: Store
    deadline_s: float

    def read(
        self,
        sql: str,
        parameters: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        scope: Scope = EVERYTHING,
        timeout_s: float | None = None,
        is_kept: bool = True,
    ) -> pl.DataFrame:
        """Return the rows of a select; see `Reader.read`."""
        left_s = max(0.01, self.deadline_s - time.monotonic())
        given_s = left_s if timeout_s is None else min(timeout_s, left_s)
        own = rows.limited(scope)
        found = self.store.read(sql, parameters, scope=own, timeout_s=given_s, is_kept=is_kept)
        usage.account().debit(rows=found.height)
        return found


def views(store: Store) -> list[View]:
    """Return the views that the person may select from."""
    sees_all = rows.teams() is None
    return [view for view in offered(store).values() if sees_all or view.is_for_teams]


def subject(sql: str) -> str:
    """Return a statement as the audit log keeps it: whole, or its begin and what identifies it."""
    if len(sql) <= audit_log.TEXT_MAX_CHARS:
        return sql
    end = f" … ({len(sql):,} characters, SHA-256 {hashlib.sha256(sql.encode()).hexdigest()[:16]})"
    return sql[: audit_log.TEXT_MAX_CHARS - len(end)] + end


def _who() -> str:
    identity = current.current_identity()
    return audit.user_name() if identity is LOCAL else identity.name


@cache
def _slots() -> Slots:
    at_once = settings().query.at_once
    return Slots(at_once, max(1, at_once - 1))


def record(store: Store, sql: str) -> None:
    """Write who asks what into the audit log, once an hour for the same question."""
    who, address, now = _who(), current.current_address(), time.monotonic()
    key = who, address, sql
    with _lock:
        if now - _asked.get(key, -AGAIN_AFTER_S) < AGAIN_AFTER_S:
            return
        _asked[key] = now
        while len(_asked) > REMEMBERED_MAX:
            _asked.popitem(last=False)
    audit.write(store, who, ACTION, subject(sql), address)
