"""What tests share: a database in memory, and surroundings that are not the tester's own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from goodput_app.settings import settings
from goodput_app.state import use_store
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store() -> Iterator[LocalStore]:
    """Give an empty database in memory."""
    with contextlib.closing(LocalStore()) as opened:
        yield opened


@pytest.fixture(autouse=True)
def untouched_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the tester's own settings and database out, and forget those of the test after it."""
    monkeypatch.delenv("GOODPUT_DB", raising=False)
    monkeypatch.delenv("GOODPUT_CONFIG", raising=False)
    settings.cache_clear()
    yield
    settings.cache_clear()
    use_store(None)
