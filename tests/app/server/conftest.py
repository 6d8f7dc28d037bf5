"""What tests of metrics share: a site that is built once."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.app.server.scraped_site import scraped_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from goodput_queries.storage.store import LocalStore


@pytest.fixture(scope="session")
def scraped_store(new_store: Callable[..., LocalStore]) -> Iterator[LocalStore]:
    """Give a cluster with three teams, hours of which are counted, and one with a GPU."""
    with contextlib.closing(scraped_site(new_store())) as store:
        yield store
