"""Readings that the database has not, since they are in its lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from goodput_app.dashboard.data import marts
from goodput_app.dashboard.state import current_store
from goodput_queries.storage.store import LocalStore

if TYPE_CHECKING:
    import polars as pl


def is_in_lake(from_ms: int) -> bool:
    """Say whether readings of a time that begins then are in the lake alone."""
    store = current_store()
    return isinstance(store, LocalStore) and store.of_lake.is_older(from_ms)


def read(sql: str, gpus: tuple[str, ...], from_ms: int, to_ms: int) -> pl.DataFrame:
    """Return the rows of a query with these parameters over readings in the lake.

    Kept like those of `marts.read`. Raises StoreError where the lake does not answer.
    """
    return _kept_of_lake(sql, gpus, from_ms, to_ms, marts.state())


@st.cache_data(max_entries=50, show_spinner="Reading from the lake ...")
def _kept_of_lake(
    sql: str, gpus: tuple[str, ...], from_ms: int, to_ms: int, state: marts.State
) -> pl.DataFrame:
    del state
    store = current_store()
    assert isinstance(store, LocalStore)  # noqa: S101 -- `is_in_lake` was asked
    return store.of_lake.read(sql, [list(gpus), from_ms, to_ms], from_ms, to_ms, gpus)
