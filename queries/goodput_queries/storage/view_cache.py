"""Views that are evaluated first, kept in memory for the reads that follow.

The panels of a page, the next page and the flags read the same views for the same scope. Each is
evaluated once for a state of the database and for the scope variables that it reads: a filter by
team leaves what looks at all nodes as it is. What a commit makes stale is dropped, and of too many
rows what was not read for the longest time.

A read evaluates what is missing in its own transaction, so that all it sees is of one snapshot; it
publishes its tables once it has ended. Another read that needs one of them waits for it: it claims
what it will make at once or not at all, so that no two reads wait for each other.
"""

import itertools
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.storage import staged_views

DATABASE = "kept"
ROWS_MAX = 4_000_000  # the ten minutes of 10,000 GPUs and a day are 1.4 million
WAIT_MAX_S = 30.0  # for a view that another read evaluates; then it is evaluated twice
_SCOPE_VARIABLE = re.compile(r"getvariable\('(scope_\w+)'\)")
CLOCK = "get_current_timestamp"

Key = tuple[int, str, tuple[Any, ...]]


@dataclass
class _Kept:
    table: str
    rows: int
    readers: int = 0


class ViewCache:
    """The evaluated views of one database; safe to use from several threads."""

    def __init__(self, root: duckdb.DuckDBPyConnection) -> None:
        """Keep them in a database in memory that all cursors of `root` see."""
        root.execute(f"attach ':memory:' as {DATABASE} (compress)")
        self.took_s = 0.0  # to evaluate views, all reads together
        self._root = root
        self._known: OrderedDict[Key, _Kept] = OrderedDict()
        self._numbers = itertools.count()
        self._making: set[Key] = set()
        self._lock = threading.Condition()

    @contextmanager
    def evaluated(
        self,
        cursor: duckdb.DuckDBPyConnection,
        sql: str,
        needed: list[Model],
        variables: Mapping[str, Any],
        commits: int,
        is_late: threading.Event,
    ) -> Iterator[dict[str, str]]:
        """Yield where the rows of the views that `sql` needs are, by name, inside the transaction.

        variables: of the scope, as the cursor has them; commits: the state of the database that the
        transaction sees; is_late: set where the read is to end. The transaction is committed where
        the read has succeeded.
        """
        keys = {
            model.qualified_name: (
                commits,
                model.qualified_name,
                tuple(variables.get(name) for name in scope_variables(model.qualified_name)),
            )
            for model in needed
            if model.is_staged_view and is_kept(model.qualified_name)
        }
        # at once, before the transaction sees this database: it sees nothing published later
        taken, missing, claimed = self._take(sql, needed, keys, is_late)
        tables = {name: kept.table for name, kept in taken.items()}
        made: dict[Key, _Kept] = {}
        began_s = time.monotonic()
        try:
            if is_late.is_set():
                raise duckdb.InterruptException("while another read evaluated a view")
            for model in missing:
                name = model.qualified_name
                key = keys.get(name)
                if key is None:
                    tables[name] = staged_views.as_temporary(cursor, model, tables)
                else:
                    table = f"{DATABASE}.main.{model.name}_{next(self._numbers)}"
                    definition = staged_views.definition(cursor, model, tables)
                    made_rows = cursor.execute(f"create table {table} {definition}").fetchall()
                    made[key] = _Kept(table, made_rows[0][0] if made_rows else 0)
                    tables[name] = table
            with self._lock:
                self.took_s += time.monotonic() - began_s
            yield tables
            cursor.execute("commit")
        except BaseException:
            made = {}  # they go with the transaction
            raise
        finally:
            self._release(taken.values(), made, claimed, commits)

    def wake(self) -> None:
        """Let reads that wait see whether they are late."""
        with self._lock:
            self._lock.notify_all()

    def _take(
        self, sql: str, needed: list[Model], keys: Mapping[str, Key], is_late: threading.Event
    ) -> tuple[dict[str, _Kept], list[Model], set[Key]]:
        """Return the views that are known, those to be made, and the keys that this read claims.

        What is known then stays until it is released. Waits for what another read is making.
        """

        def missing() -> tuple[list[Model], set[Key]]:
            known = {name for name, key in keys.items() if key in self._known}
            models = staged_views.not_covered(sql, needed, known)
            return models, {keys[m.qualified_name] for m in models if m.qualified_name in keys}

        with self._lock:
            self._lock.wait_for(
                lambda: is_late.is_set() or self._making.isdisjoint(missing()[1]), WAIT_MAX_S
            )
            to_make, wanted = missing()
            claimed = wanted - self._making
            self._making |= claimed
            taken = {name: self._known[key] for name, key in keys.items() if key in self._known}
            for name, known in taken.items():
                known.readers += 1
                self._known.move_to_end(keys[name])
            return taken, to_make, claimed

    def _release(
        self, read: Iterable[_Kept], made: dict[Key, _Kept], claimed: set[Key], commits: int
    ) -> None:
        """Publish what was made, and drop what nobody will read or what is too much."""
        with self._lock:
            self._making -= claimed
            self._lock.notify_all()
            for known in read:
                known.readers -= 1
            dropped = [kept for key, kept in made.items() if key in self._known]
            self._known |= {key: kept for key, kept in made.items() if key not in self._known}
            newest = max((key[0] for key in self._known), default=commits)
            rows = sum(kept.rows for kept in self._known.values())
            for key, kept in list(self._known.items()):
                if kept.readers == 0 and (key[0] < newest or rows > ROWS_MAX):
                    rows -= kept.rows
                    dropped.append(self._known.pop(key))
        if dropped:
            with self._root.cursor() as cursor:
                for kept in dropped:
                    cursor.execute(f"drop table {kept.table}")


@cache
def is_kept(name: str) -> bool:
    """Say whether the rows of a view are the same as long as the database is."""
    return CLOCK not in _depends_on(name)


@cache
def scope_variables(name: str) -> tuple[str, ...]:
    """Return the variables of the scope that the rows of a view depend on."""
    return tuple(sorted(_depends_on(name) - {CLOCK}))


@cache
def _depends_on(name: str) -> frozenset[str]:
    """Return the variables of the scope and the clock, if a view or one that it reads asks it."""
    known = models.by_name()
    read = (n for n in models.inputs(known[name]) if not known[n].is_stored)
    return frozenset[str]().union(*map(_asks, (name, *read)))


@cache  # each is read by many
def _asks(name: str) -> frozenset[str]:
    """Return what the SQL of a view, and of the macros that it calls, asks by itself."""
    text = models.with_macros(models.by_name()[name].sql)
    return frozenset((*_SCOPE_VARIABLE.findall(text), *((CLOCK,) if CLOCK in text else ())))
