"""The Python API for notebooks and scripts: ledger, runs, idle gaps, any view, any select.

All methods return Polars frames. Times in frames are UTC without a zone; intervals are half-open.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import polars as pl

from goodput_queries import ledger as ledgers
from goodput_queries.catalog.find import find_view
from goodput_queries.database import Store, open_store
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.names import resolved
from goodput_queries.remote import LOOPBACK_HOSTS, RemoteStore
from goodput_queries.scope import Scope

TOKEN_VARIABLE = "GOODPUT_TOKEN"  # noqa: S105 -- the name of a variable
Time = str | date | datetime


class Database:
    """An open database; a context manager. It releases the file or the connection at its end.

    Filters of all methods but `sql`, each optional: `from_` (inclusive) and `to` (exclusive) as a
    datetime with a time zone, a date or ISO 8601 text with an offset; `cluster`, `node`,
    `gpu_uuid`, `gpu_model`, `team`, `user`, `partition`; `run` by its key, its id or its job's
    name. A name that the ledger does not contain raises QueryError with names like it.
    """

    def __init__(self, store: Store) -> None:
        """Wrap an open store; `goodput_queries.open` makes one."""
        self._store = store

    @classmethod
    def open(cls, path_or_url: str | Path, *, token: str | None = None) -> Self:
        """Open a file or connect to a server, and bring the ledger up to date."""
        if str(path_or_url).startswith(("http://", "https://")):
            store: Store = _connect(str(path_or_url), token)
        elif not Path(path_or_url).exists():
            raise StoreError(
                f"{path_or_url}: there is no such database. Create it with "
                f"`goodput ingest auto FOLDER --db {path_or_url}`."
            )
        else:
            store = open_store(path_or_url)
        try:
            store.build()
        except BaseException:
            store.close()
            raise
        return cls(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file or the connection."""
        self._store.close()

    def ledger(
        self,
        by: str | Sequence[str] = "category",
        *,
        from_: Time | None = None,
        to: Time | None = None,
        **filters: str,
    ) -> pl.DataFrame:
        """Return GPU time by one or more keys, largest first.

        Without owner filters the rows add up to the capacity, in integer milliseconds.

        by: `category`, `phase`, `blame`, `cluster`, `node`, `gpu`, `model`, `team`, `user`, `run`,
        `attempt`, `job`, `partition`, `qos`, `hour`, `day`.
        Columns: the keys; `gpu_ms` (integer milliseconds of a GPU); `gpu_s` (seconds);
        `share_ratio` (0 to 1, of all rows); `cost` in the site's currency, null without a price.
        """
        keys = [by] if isinstance(by, str) else list(by)
        return ledgers.ledger(self._store, by=keys, scope=self._scope(from_, to, filters))

    def view(
        self, name: str, *, from_: Time | None = None, to: Time | None = None, **filters: str
    ) -> pl.DataFrame:
        """Return all rows of a view or table by name: `"capacity"`, `"marts.runs"`.

        `goodput show` lists the views, `select * from duckdb_columns()` their columns with units.
        """
        model = find_view(name)
        scope = self._scope(from_, to, filters)
        return self._store.read(f"select * from {model.qualified_name}", scope=scope)

    def runs(
        self, *, from_: Time | None = None, to: Time | None = None, **filters: str
    ) -> pl.DataFrame:
        """Return the runs of the window (`marts.runs`), one row a run.

        Among the columns: `run_key`, `run_name`, `team`, `user_name`, `gpus`, `held_ms`,
        `useful_ms`, `wasted_ms` (milliseconds of a GPU), `goodput_of_held_ratio` (0 to 1, of
        allocated time; null where it is not measured), `ettr_ratio`, `restarts`, `verdict`
        (its largest finding; null without one).
        """
        return self.view("marts.runs", from_=from_, to=to, **filters)

    def gaps(
        self, *, from_: Time | None = None, to: Time | None = None, **filters: str
    ) -> pl.DataFrame:
        """Return the idle gaps of the window (`marts.idle_gaps`), one row for each GPU and gap.

        Among the columns: `gpu_uuid`, `node`, `start_at`, `end_at` (UTC), `gap_s` (seconds),
        `category`, `cause`, `confidence`, `gpu_ms` (milliseconds of a GPU).
        """
        return self.view("marts.idle_gaps", from_=from_, to=to, **filters)

    def sql(
        self, text: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> pl.DataFrame:
        """Return the rows of one select over all the data.

        parameters: values of `$1`, `$2` as a list, or of `$name` as a dict.
        Raises QueryError for anything that is not one select.
        """
        return self._store.read(text, parameters)

    def _scope(self, from_: Time | None, to: Time | None, filters: Mapping[str, str]) -> Scope:
        fields = Scope.__dataclass_fields__
        known = [n for n in fields if not n.endswith("_ms") and n != "teams"]
        if unknown := [name for name in filters if name not in known]:
            raise QueryError(f"there is no filter {unknown[0]!r}; known: {', '.join(known)}.")
        window = Scope(_epoch_ms(from_), _epoch_ms(to))
        return resolved(self._store, replace(window, **dict[str, Any](filters)))


def _epoch_ms(at: Time | None) -> int | None:
    if at is None:
        return None
    if isinstance(at, str):
        try:
            at = (
                datetime.fromisoformat(at)
                if len(at) > len("2026-11-20")
                else date.fromisoformat(at)
            )
        except ValueError as error:
            raise QueryError(
                f"{at!r} is not a valid time; expected like 2026-11-20T14:00Z or 2026-11-20."
            ) from error
    if not isinstance(at, datetime):
        at = datetime(at.year, at.month, at.day, tzinfo=UTC)
    if at.tzinfo is None:
        raise QueryError(
            f"{at.isoformat()} has no time zone. Times in frames are UTC: "
            "use `.replace(tzinfo=datetime.UTC)`, or text that ends with Z."
        )
    return round(at.timestamp() * 1000)


def _connect(url: str, token: str | None) -> RemoteStore:
    """Return the store of the server at a URL. Raises StoreError that names what is missing."""
    if urlsplit(url).hostname not in LOOPBACK_HOSTS:
        raise StoreError(
            f"{url}: a server answers queries of its own machine only. Forward its port, "
            "`ssh -L 8501:127.0.0.1:8501 HOST`, and open http://127.0.0.1:8501."
        )
    token = token or os.environ.get(TOKEN_VARIABLE)
    if not token:
        raise StoreError(
            f"{url}: a token is needed. It is `token` in DATABASE.server.json next to the database "
            f"of the server; pass it as `token=` or set {TOKEN_VARIABLE}."
        )
    server = RemoteStore.at(url, token)
    try:
        server.read("select 1")
    except StoreError as error:
        server.close()
        raise StoreError(
            f"{url}: no server answers with this token. Is `goodput serve` running there? The "
            f"token changes at each start. ({error})"
        ) from error
    return server
