"""What tests of the server share: sites that are built once."""

import contextlib

import pytest
from tests.app.server.scraped_site import scraped_site


@pytest.fixture(scope="session")
def scraped_store(new_store):
    """Give a cluster with three teams, hours of which are counted, and one with a GPU."""
    with contextlib.closing(scraped_site(new_store())) as store:
        yield store


@pytest.fixture(scope="module")
def recorded(recorded_demo, new_store):
    """Give the recorded session."""
    with contextlib.closing(new_store(copy_of=recorded_demo)) as store:
        yield store
