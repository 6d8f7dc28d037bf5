"""Readings that the database has not, since they are in its lake."""

from datetime import datetime
from functools import cache
from typing import Final

import polars as pl

from goodput_app.dashboard.data import marts
from goodput_app.dashboard.data.kept import kept
from goodput_app.process.store import current_store
from goodput_queries.catalog import models
from goodput_queries.database import LocalStore
from goodput_queries.ledger_build.lake import READINGS, Lake
from goodput_queries.scope import Scope, utc_at

HOST_BEFORE_MS: Final = 3_600_000  # an interval between two readings of a host is as long at most
NAMES_OF_NODE: Final = """select $1 as node
    union
    select node from staging.stg_node_clusters where known_as = $1"""
READS_STORED: Final = {  # where single readings are missing they lack nothing
    "marts.power_over_time",  # its page then asks for buckets of the ten-minute roll-up
    "marts.data_quality",  # it counts readings of hours that retention froze here
}


def first_reading_of(view: str) -> datetime | None:
    """Return from when on a view has readings, of which the lake has earlier ones; None: of all.

    A database of a lake has single readings of recent days only; what builds made of them stays.
    """
    first_ms = _first_reading_here(marts.state())
    if first_ms is None or not _asks_readings(view):
        return None
    return utc_at(first_ms)


@cache
def _asks_readings(view: str) -> bool:
    known = {model.qualified_name for model in models.build_order()}
    return view in known - READS_STORED and bool(models.evidence(view)[0] & set(READINGS))


def url() -> str | None:
    """Return the lake that the database is of; None: of none."""
    return _url_of(marts.state())


@kept(4)
def _url_of(state: marts.State) -> str | None:
    del state
    found: str | None = current_store().read("select min(url) from state.lake_versions").item()
    return found


@kept(4)
def _first_reading_here(state: marts.State) -> int | None:
    """Return from when on the database has readings, where its lake has earlier ones."""
    del state
    found = current_store().read(
        """select max(from_ms) from state.lake_readings
        where from_ms > (select min(first_ms) from state.reading_series)"""
    )
    first_ms: int | None = found.item()
    return first_ms


def is_in_lake(from_ms: int) -> bool:
    """Say whether readings of a time that begins then are in the lake alone."""
    store = current_store()
    return isinstance(store, LocalStore) and store.lake is not None and store.lake.is_older(from_ms)


def read(sql: str, gpus: tuple[str, ...], from_ms: int, to_ms: int) -> pl.DataFrame:
    """Return the rows of a query with these parameters over readings in the lake.

    Kept like those of `marts.read`. Raises StoreError where the lake does not answer.
    """
    return _kept_of_lake(sql, gpus, from_ms, to_ms, marts.state())


@kept(50, "Reading from the lake ...")
def _kept_of_lake(
    sql: str, gpus: tuple[str, ...], from_ms: int, to_ms: int, state: marts.State
) -> pl.DataFrame:
    del state
    return _lake().read(sql, [list(gpus), from_ms, to_ms], (from_ms, to_ms), gpus)


def read_host(sql: str, scope: Scope) -> pl.DataFrame:
    """Return the rows of a query over readings of the scope's node in the lake; kept, too."""
    return _kept_of_host(sql, scope, marts.state())


@kept(50, "Reading from the lake ...")
def _kept_of_host(sql: str, scope: Scope, state: marts.State) -> pl.DataFrame:
    del state
    from_ms, to_ms = scope.from_ms or 0, scope.to_ms or 0
    names = current_store().read(NAMES_OF_NODE, [scope.node])["node"].to_list()
    for keys in (names, None):  # a source may write the name as no other one does
        found = _lake().read(sql, [], (from_ms - HOST_BEFORE_MS, to_ms), keys, scope)
        if not found.is_empty():
            break
    return found


def _lake() -> Lake:
    """Return the lake of the database; `is_in_lake` was asked."""
    store = current_store()
    assert isinstance(store, LocalStore) and store.lake is not None  # noqa: S101, PT018 -- as above
    return store.lake
