"""A real server on the sample data and a real browser; no browser, no journey."""

import contextlib
import os
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.app.served import serving as served_at
from tests.until import until

from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch

# without a window of its own, it takes a sixth less of a machine's time
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--js-flags=--no-opt",  # pages go before their optimised code pays
]  # fmt: skip
WAIT_MS = 180_000  # the first page of a cold server on a busy machine
expect.set_options(timeout=WAIT_MS)


def _lose_a_link(database):
    """Add an InfiniBand link of the session's node that is down for two minutes."""
    with contextlib.closing(LocalStore(database)) as store:
        readings = store.read(
            """select 'test' as source, node, 'infiniband' as kind, 'mlx5_0' as device,
                '1' as port, n not in (1, 2) as is_up,
                timestamp '2026-11-20 12:30:00' + interval (n) minute as ts
            from range(5) as minutes(n), (select distinct node from marts.gpus)"""
        )
        store.load(Batch("link_samples", readings, "test", "test", "a lost link"))
        store.build()


@pytest.fixture(scope="session")
def served(recorded_demo, tmp_path_factory):
    """Give the database that the server of `base_url` has open."""
    database = tmp_path_factory.mktemp("served") / "demo.duckdb"
    shutil.copyfile(recorded_demo, database)
    _lose_a_link(database)
    return database


@contextlib.contextmanager
def serving(database):
    """Serve a database and give the URL, once the ledger is up to date: a build redraws pages."""
    with served_at(database) as server:
        until(
            lambda: server.get("/healthz").json()["is_built"],
            "the first build has ended",
            within_s=WAIT_MS / 1000,
        )
        yield server.url


@pytest.fixture(scope="session")
def base_url(served):
    with serving(served) as url:
        yield url


def launch(browser_type, *flags):
    """Start headless Chromium, with its own allocator."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return browser_type.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags], env=environment)


@pytest.fixture(scope="module")  # later tests of its process have loops of their own
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync_playwright() as playwright:
        started = launch(playwright.chromium)
        yield started
        started.close()


@pytest.fixture(scope="module")
def light_context(browser):
    """Keep what windows of a module have loaded: else each one compiles the client again."""
    context = browser.new_context(
        color_scheme="light",
        reduced_motion="reduce",  # moving parts cost a fifth of the browser's time
    )
    yield context
    context.close()


@pytest.fixture
def page(light_context):
    """Open a window of its own, in a light scheme; both: test_sweep."""
    opened = light_context.new_page()
    opened.set_viewport_size({"width": 1440, "height": 1600})
    opened.set_default_timeout(WAIT_MS)
    yield opened
    opened.close()
    light_context.clear_cookies()
